-- Finds a field that a table of a Lua file gives twice: Lua takes the last one and says nothing.
local lua_text = require "gen.schema.lua_text"

local duplicate_fields = {}

-- Words that open a block of statements, in which commas and names are of another kind, and words that close one.
local opens = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true }
local closes = { ["end"] = true, ["until"] = true }

-- Raises one line if a table in the text `source` of the Lua file `path`, which Lua can read, has a field twice.
function duplicate_fields.refuse(source, path)
    local code, stack, item = lua_text.code(source), {}, false -- item: one of a table, or a statement, begins
    -- The stack has for each open bracket or block the places of its fields by name, or false where it is no table.
    for at, word, after, sign in code:gmatch "()([%w_.]*)()(%p?)" do
        local fields, keyword = stack[#stack], word:match "[%w_]*$"
        if item and fields and word ~= "" and code:find("^%s*=[^=]", after) then
            if fields[word] then
                local form = "%s:%d: %s: is given twice, first in line %d"
                local line, first = lua_text.line(source, at), lua_text.line(source, fields[word])
                error(form:format(path, line, word, first), 0)
            end
            fields[word] = at
        elseif opens[keyword] then
            stack[#stack + 1] = false
        elseif closes[keyword] then
            stack[#stack] = nil
        end
        if word ~= "" then item = false end
        if sign:find "[{(%[]" then
            stack[#stack + 1] = sign == "{" and {}
        elseif sign:find "[})%]]" then
            stack[#stack] = nil
        end
        if sign ~= "" then item = sign:find "[{,;]" ~= nil end
    end
end

return duplicate_fields
