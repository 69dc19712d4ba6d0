-- The text of a Lua file of data: what of it is code, the lines of places in it, and how values are written.
local lua_text = {}

-- `source` with comments and strings blanked, and ["a.b"] = turned into a.b =; newlines and places stay.
function lua_text.code(source)
    local list, at = {}, 1
    local function keep(text)
        list[#list + 1] = text
        at = at + #text
    end
    while at <= #source do
        local before, _, key, after = source:match("^(%[%s*([\"']))([%w_.]+)(%2%s*%])", at)
        local comment = source:match("^%-%-()", at)
        local level, quote = source:match("^%[(=*)%[", comment or at), source:match("^[\"']", at)
        local last
        if level then
            last = select(2, source:find("]" .. level .. "]", at, true))
        elseif comment then
            last = source:find("\n", at, true)
        elseif quote then
            last = at + 1
            while last <= #source and source:sub(last, last) ~= quote do
                last = last + (source:sub(last, last) == "\\" and 2 or 1)
            end
        end
        if key then
            keep(before:gsub("[^\n]", " ") .. key .. after:gsub("[^\n]", " "))
        elseif last or comment then
            keep((source:sub(at, last or #source):gsub("[^\n]", " ")))
        else
            keep(source:sub(at, (source:find("[-%[\"']", at + 1) or #source + 1) - 1))
        end
    end
    return table.concat(list)
end

-- The line of place `at` in `source`.
function lua_text.line(source, at)
    local _, newlines = source:sub(1, at - 1):gsub("\n", "")
    return newlines + 1
end

-- The keys of a table in order.
function lua_text.keys(map)
    local list = {}
    for key in pairs(map) do
        list[#list + 1] = key
    end
    table.sort(list)
    return list
end

-- A value as it is written: { a = 1, b = { "c", "d" } }, tables on one line.
function lua_text.value(value)
    if type(value) == "string" then return (string.format("%q", value):gsub("\\\n", "\\n")) end
    if value == math.huge then return "math.huge" end
    if type(value) ~= "table" then return tostring(value) end
    local list = {}
    for i, key in ipairs(lua_text.keys(value)) do
        list[i] = (key == i and "" or key .. " = ") .. lua_text.value(value[key])
    end
    return #list > 0 and "{ " .. table.concat(list, ", ") .. " }" or "{}"
end

return lua_text
