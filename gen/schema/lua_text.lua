-- The text of a Lua file of data: what of it is code, and the lines of places in it.
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

return lua_text
