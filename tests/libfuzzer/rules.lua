-- What must be true of every input, whatever it is: how it may be refused, and that values are equal.
local rules = {}

-- Calls f(...), which reads the file `path`, or files in that folder. Returns its results, or nothing if it refuses the
-- input with a text that says which file; a text with a place in lookupc's own Lua, or anything else, is a finding.
function rules.try(path, f, ...)
    local results = table.pack(pcall(f, ...))
    local message = type(results[2]) == "table" and tostring(results[2]) or results[2]
    if results[1] then return table.unpack(results, 2, results.n) end
    if type(message) ~= "string" then error("raises a " .. type(message) .. ", not a line of text", 0) end
    if message:find "^[%w_/]+%.lua:%d+: " then error("internal error: " .. message, 0) end
    if message:sub(1, #path) ~= path or not message:find(": %S", #path + 1) then
        error("does not say which file and what is wrong with it: " .. message, 0)
    end
end

-- A finding unless the tables or values a and b are equal; `where` names them.
function rules.same(where, a, b)
    if type(a) ~= "table" or type(b) ~= "table" then
        if a ~= b and (a == a or b == b) then
            error(string.format("%s: %s is not %s", where, tostring(a), tostring(b)), 0)
        end
        return
    end
    for key, value in pairs(a) do
        rules.same(where .. "." .. tostring(key), value, b[key])
    end
    for key in pairs(b) do
        if a[key] == nil then error(string.format("%s.%s: is missing", where, tostring(key)), 0) end
    end
end

return rules
