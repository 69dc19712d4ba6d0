-- Which ids end a text, as the files beside a tokenizer say it: the first that names a piece decides.
local fields = require "gen.import.fields"
local json = require "json"

local ends = {}

local key, ignored = "eos_token_id", "%s: %s = %s: ignored: is the id of no piece"

-- The ids under the key of `object`, the decoded file `path`: a number or a list; nil: there are none.
local function listed(path, object)
    local value = object[key]
    if value == nil or value == json.null then return {} end
    if type(value) == "table" then value = fields.typed(path, object, "", key, "list") end
    local list = type(value) == "table" and value or { value }
    for _, id in ipairs(list) do
        if type(id) ~= "number" then fields.refuse(path, key, id, "must be the id of a piece, or a list of them") end
    end
    return list
end

-- The ids of those among `files`, { {path, object} }, of a tokenizer with so many pieces; nil: no file says it. And
-- what to say of those that are no piece's.
function ends.of(files, pieces)
    local no_pieces = {}
    for _, file in ipairs(files) do
        local found, seen = {}, {}
        for _, id in ipairs(listed(file.path, file.object)) do
            local good = math.tointeger(id) and id >= 0 and id < pieces
            if not good then no_pieces[#no_pieces + 1] = string.format(ignored, file.path, key, id) end
            if good and not seen[id] then found[#found + 1] = math.tointeger(id) end
            seen[id] = true
        end
        if found[1] then return found, no_pieces end
    end
    return nil, no_pieces
end

return ends
