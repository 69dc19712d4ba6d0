-- Finds a field that a table of a Lua file gives twice: Lua takes the last one and says nothing.
local duplicate_fields = {}

-- Words that open a block of statements, in which commas and names are of another kind, and words that close one.
local opens = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true }
local closes = { ["end"] = true, ["until"] = true }

-- The place behind the short string that begins at `at`.
local function behind_string(source, at)
    local quote, place = source:sub(at, at), at + 1
    while true do
        local stop = source:find("[\\" .. quote .. "]", place)
        if not stop then return #source + 1 end
        if source:sub(stop, stop) == quote then return stop + 1 end
        place = stop + 2
    end
end

-- The place behind the long bracket that begins at `at`, nil: none does.
local function behind_long(source, at)
    local equals = source:match("^%[(=*)%[", at)
    if not equals then return nil end
    local _, last = source:find("]" .. equals .. "]", at, true)
    return (last or #source) + 1
end

-- The place behind the white space and the comments that begin at `at`.
local function behind_blank(source, at)
    while true do
        local start = at
        at = source:match("^%s+()", at) or at
        if source:find("^%-%-", at) then
            at = behind_long(source, at + 2) or source:find("\n", at, true) or #source + 1
        end
        if at == start then return at end
    end
end

-- The name of the field that begins at `at`, an item of a table, and the place of its value; nil: it has no name.
local function field_at(source, at)
    local name, place = source:match("^([%a_][%w_]*)()", at)
    if not name and source:find("^%[%s*[\"']", at) then
        local first = source:match("^%[%s*()", at)
        local last = behind_string(source, first)
        name, place = source:sub(first + 1, last - 2), source:match("^%s*%]()", last)
    end
    if not place then return nil end
    place = behind_blank(source, place)
    if source:find("^=[^=]", place) then return name, place + 1 end
    return nil
end

local function line_of(source, at) return select(2, source:sub(1, at - 1):gsub("\n", "\n")) + 1 end

-- Raises one line if a table in the text `source` of the Lua file `path`, which Lua can read, has a field twice.
function duplicate_fields.refuse(source, path)
    local stack, at = {}, 1 -- per open bracket or block: { table: places of its fields by name, or false }
    local function item() -- of a table begins at `at`, perhaps
        local fields = #stack > 0 and stack[#stack].table
        if not fields then return end
        at = behind_blank(source, at)
        local name, value = field_at(source, at)
        if not name then return end
        if fields[name] then
            local form = "%s:%d: %s: is given twice, first in line %d"
            error(form:format(path, line_of(source, at), name, line_of(source, fields[name])), 0)
        end
        fields[name], at = at, value
    end
    while true do
        at = behind_blank(source, at)
        local sign = source:sub(at, at)
        local word = source:match("^[%w_]+", at)
        if sign == "" then
            return
        elseif word then
            at = at + #word
            if opens[word] then stack[#stack + 1] = { table = false } end
            if closes[word] then stack[#stack] = nil end
        elseif sign == '"' or sign == "'" then
            at = behind_string(source, at)
        elseif sign == "[" and behind_long(source, at) then
            at = behind_long(source, at)
        else
            at = at + 1
            if sign == "{" or sign == "(" or sign == "[" then
                stack[#stack + 1] = { table = sign == "{" and {} }
            elseif sign == "}" or sign == ")" or sign == "]" then
                stack[#stack] = nil
            end
            if sign == "{" or sign == "," or sign == ";" then item() end
        end
    end
end

return duplicate_fields
