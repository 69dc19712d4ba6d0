-- Reads the fields of a decoded JSON file that somebody else wrote: each is what it has to be, or one line says file,
-- field, value and rule.
local files_read = require "gen.host.files_read"
local host = require "host"
local json = require "json"
local keys = require "gen.families.model.keys"
local shortened = require "gen.schema.shortened"

local fields = {}

local largest = 1 << 24 -- bytes of a file of settings

-- The largest integer that a model file may have under a key such as "layers" or "ffn.f".
function fields.most(chain)
    local rows, rule = keys.blocks, nil
    for word in chain:gmatch "[^.]+" do
        for _, row in ipairs(rows) do
            if row.key == word then
                rule = row.rule
                break
            end
        end
        rows = rule.table
    end
    return rule.last
end

-- Raises one line for the field `key` of the file `path`.
function fields.refuse(path, key, value, rule)
    local plain = value ~= nil and value ~= json.null and type(value) ~= "table"
    local shown = plain and " = " .. shortened(tostring(value), 60) or ""
    error(string.format("%s: %s%s: %s", path, key, shown, rule), 0)
end

local function is(value, kind)
    if kind == "integer" then return math.type(value) == "integer" end
    if kind == "list" then
        if type(value) ~= "table" then return false end
        for key in pairs(value) do
            if type(key) ~= "number" then return false end
        end
        return true
    end
    return type(value) == kind
end

local called = { integer = "an integer", list = "a list", table = "an object" }

-- The value `key` of the table `source`, of the type `kind` ("integer", "list" or Lua's); `otherwise` where it is
-- absent or null, which is refused without one. `prefix` stands before the key in messages.
function fields.typed(path, source, prefix, key, kind, otherwise)
    local value = source[key]
    if value == nil or value == json.null then
        if otherwise == nil then fields.refuse(path, prefix .. key, nil, "is missing") end
        return otherwise
    end
    if not is(value, kind) then
        fields.refuse(path, prefix .. key, value, "must be " .. (called[kind] or "a " .. kind))
    end
    return value
end

-- The dimensions in the list `key` and their product, which is at most `most`.
function fields.shape(path, source, prefix, key, most)
    local shape, count = {}, 1
    local list = fields.typed(path, source, prefix, key, "list")
    if #list > 8 then fields.refuse(path, prefix .. key, nil, "must have at most 8 dimensions") end
    for i, n in ipairs(list) do
        if math.type(n) ~= "integer" or n < 0 or n > most then
            fields.refuse(path, prefix .. key, n, "must be integers from 0 to " .. most)
        end
        shape[i], count = n, count * n
        if count > most then fields.refuse(path, prefix .. key, nil, "must hold at most " .. most .. " elements") end
    end
    return shape, count
end

-- The object in a JSON file of the folder, empty if there is none, and its path.
function fields.settings(folder, name)
    local path = folder .. "/" .. name
    if host.kind(path) ~= "file" then return {}, path end
    local text, message = host.read_regular(files_read.note(path), largest)
    if not text then error(message, 0) end
    local object, why = json.decode(text)
    if type(object) ~= "table" then error(path .. ": " .. (why or "must be an object"), 0) end
    return object, path
end

return fields
