-- Reads a minGPT checkpoint as JSON: its configuration, and tensors as base64 under their names.
local fields = require "gen.import.fields"
local shortened = require "gen.schema.shortened"

local mingpt_json = {}

local most_elements = 1 << 28
local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local values = {}
for i = 1, #alphabet do
    values[alphabet:byte(i)] = i - 1
end

-- The bytes that the text `text` stands for, or nil.
local function from_base64(text)
    local body, padding = text:match "^([%w+/]*)(=?=?)$"
    if not body or #text % 4 ~= 0 then return nil end
    local parts = {}
    for at = 1, #body, 4 do
        local a, b, c, d = body:byte(at, at + 3)
        local bits = values[a] << 18 | (values[b] or 0) << 12 | (values[c] or 0) << 6 | (values[d] or 0)
        parts[#parts + 1] = string.pack(">I3", bits)
    end
    local bytes = table.concat(parts)
    return bytes:sub(1, #bytes - #padding)
end

-- Whether the decoded JSON `object` is such a checkpoint.
function mingpt_json.claims(object)
    return type(object.config) == "table" and type(object["transformer.wte.weight"]) == "table"
end

-- Its tensors { name, dtype, shape, bytes } in the order of their names. Raises one line.
function mingpt_json.tensors(path, object)
    local names, tensors = {}, {}
    for name in pairs(object) do
        if name ~= "config" then names[#names + 1] = name end
    end
    table.sort(names)
    for i, name in ipairs(names) do
        local entry, prefix = object[name], shortened(name, 60) .. "."
        if type(entry) ~= "table" then fields.refuse(path, shortened(name, 60), nil, "must be a tensor") end
        local dtype = fields.typed(path, entry, prefix, "dtype", "string")
        if dtype ~= "torch.float32" then fields.refuse(path, prefix .. "dtype", dtype, "must be torch.float32") end
        local shape, count = fields.shape(path, entry, prefix, "shape", most_elements)
        local bytes = from_base64(fields.typed(path, entry, prefix, "data", "string"))
        if not bytes then fields.refuse(path, prefix .. "data", nil, "must be base64") end
        if #bytes ~= 4 * count then
            fields.refuse(path, prefix .. "data", nil, string.format("has %d bytes: must be %d", #bytes, 4 * count))
        end
        tensors[i] = { name = name, dtype = "F32", shape = shape, bytes = bytes }
    end
    return tensors
end

-- The table of its model file. Raises one line.
function mingpt_json.model(path, object)
    local function integer(key) return fields.typed(path, object.config, "config.", key, "integer") end
    local width = integer "n_embd"
    return {
        d = width,
        heads = integer "n_head",
        layers = integer "n_layer",
        vocab = integer "vocab_size",
        positions = integer "block_size",
        attention = { context = integer "block_size" },
        ffn = { kind = "mlp", f = 4 * width, activation = "gelu_tanh" },
        skip = true,
        norm = { kind = "layernorm", eps = 1e-5 },
        checkpoint = "mingpt",
        embedding = {},
        output = { norm = { kind = "layernorm", eps = 1e-5 }, head = {} },
    }
end

return mingpt_json
