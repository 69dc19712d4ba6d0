-- Renders a template: C text with `//$ lua` lines and `$(expression)` substitutions.
--
-- Every template line becomes exactly one line of a Lua chunk whose name is the template's path, so Lua's own
-- messages carry file and line. A substitution takes a string or an integer, nothing else, and the environment
-- has no pairs, os, io or math.random: what a template prints depends on its arguments only.

local template = {}

-- The address of a table or a function differs from run to run.
local function text_of(value)
    if type(value) == "table" or type(value) == "function" then
        error("tostring takes a string, a number or a boolean, got a " .. type(value), 2)
    end
    return tostring(value)
end

local safe = { ipairs = ipairs, error = error, assert = assert, tostring = text_of, type = type }

-- The part after "$" is a balanced "(...)".
local function substitutions(line, path, number)
    local code, from = {}, 1
    while true do
        local at = line:find("$(", from, true)
        if not at then break end
        local expression = line:match("^%b()", at + 1)
        if not expression then error(string.format("%s:%d: $( is not closed on this line", path, number), 0) end
        if at > from then code[#code + 1] = string.format("_put(%q)", line:sub(from, at - 1)) end
        code[#code + 1] = "_value" .. expression
        from = at + 1 + #expression
    end
    code[#code + 1] = string.format("_put(%q)", line:sub(from) .. "\n"):gsub("\\\n", "\\n")
    return table.concat(code, " ")
end

local function compile(text, path)
    local chunk, number = {}, 0
    for line in (text:gsub("\n$", "") .. "\n"):gmatch("([^\n]*)\n") do
        number = number + 1
        local statement = line:match("^%s*//%$(.*)$")
        chunk[number] = statement or substitutions(line, path, number)
    end
    return table.concat(chunk, "\n")
end

local chunks = {} -- by path and text

-- The Lua chunk of a template: a function of its environment.
local function chunk_of(text, path)
    local key = path .. "\n" .. text
    if not chunks[key] then
        local chunk, message = load("local _ENV = ...; " .. compile(text, path), "@" .. path, "t")
        if not chunk then error(message, 0) end
        chunks[key] = chunk
    end
    return chunks[key]
end

-- Renders `text`, the contents of the file `path`, with the names in `values`.
-- Returns the output; raises "path:line: message" when the template is wrong.
function template.render(text, path, values)
    local out = {}
    local environment = setmetatable({}, {
        __index = function(_, name)
            local value = values[name]
            if value == nil then value = safe[name] end
            if value == nil then error("unknown name '" .. tostring(name) .. "'", 2) end
            return value
        end,
    })
    environment._put = function(piece) out[#out + 1] = piece end
    environment._value = function(value)
        if type(value) ~= "string" and math.type(value) ~= "integer" then
            error("$(…) takes a string or an integer, got a " .. (math.type(value) or type(value)), 2)
        end
        out[#out + 1] = tostring(value)
    end
    -- Renders a list of lines at the indentation of the call: `//$ lines("    ", list)`.
    environment.lines = function(indent, list)
        for _, line in ipairs(list) do
            out[#out + 1] = line == "" and "\n" or indent .. line .. "\n"
        end
    end
    chunk_of(text, path)(environment)
    return table.concat(out)
end

return template
