-- Reads the weights of a TensorFlow.js model: model.json lists tensors, whose bytes lie one behind the other in shards.
local fields = require "gen.import.fields"
local files_read = require "gen.host.files_read"
local host = require "host"

local tensorflow_js = {}

local most_elements = 1 << 31
local largest_shard = 1 << 31 -- bytes

local widths = { float32 = 4, float16 = 2, int32 = 4, bool = 1, complex64 = 8, uint8 = 1, uint16 = 2 }
-- What a quantised tensor holds instead: string.unpack's format of an element.
local quantised = { uint8 = "B", uint16 = "<I2" }

-- The bytes of the shards that are listed in group `group`, one behind the other.
local function shards_of(path, group, prefix)
    local folder, parts = path:match "^(.*/)[^/]*$" or "", {}
    for i, name in ipairs(fields.typed(path, group, prefix, "paths", "list")) do
        local key = prefix .. "paths[" .. i .. "]"
        if type(name) ~= "string" or name == "" or name:find "[/\0]" or name == "." or name == ".." then
            fields.refuse(path, key, type(name) == "string" and name or nil, "must be the name of a file beside it")
        end
        local bytes, message = host.read_regular(files_read.note(folder .. name), largest_shard)
        if not bytes then error(message, 0) end
        parts[i] = bytes
    end
    return table.concat(parts)
end

-- The float32 bytes of values that are stored as v and mean v scale + min.
local function dequantised(bytes, format, scale, min)
    local width, parts = string.packsize(format), {}
    local values = {}
    for at = 1, #bytes, width do
        values[#values + 1] = string.unpack(format, bytes, at) * scale + min
        if #values == 128 or at + width > #bytes then
            parts[#parts + 1] = string.pack("<" .. ("f"):rep(#values), table.unpack(values))
            values = {}
        end
    end
    return table.concat(parts)
end

-- One tensor that starts at byte `at` of `bytes`: its name, shape, and bytes as safetensors has them, with their dtype
-- there, or nil for one that is neither float32 nor int32; and how many bytes it takes.
local function tensor_of(path, entry, prefix, bytes, at)
    local name = fields.typed(path, entry, prefix, "name", "string")
    if name == "" or not utf8.len(name) then fields.refuse(path, prefix .. "name", nil, "must be UTF-8") end
    local dtype = fields.typed(path, entry, prefix, "dtype", "string")
    local shape, count = fields.shape(path, entry, prefix, "shape", most_elements)
    local quantisation = fields.typed(path, entry, prefix, "quantization", "table", false)
    local stored = dtype
    if quantisation then
        stored = fields.typed(path, quantisation, prefix .. "quantization.", "dtype", "string")
        if not quantised[stored] and stored ~= "float16" then
            fields.refuse(path, prefix .. "quantization.dtype", stored, "must be uint8, uint16 or float16")
        end
    end
    if not widths[stored] then
        fields.refuse(path, prefix .. "dtype", dtype, "must be float32, float16, int32, bool or complex64")
    end
    local length = count * widths[stored]
    if at + length > #bytes then
        fields.refuse(
            path,
            prefix .. "shape",
            nil,
            string.format("tensor %s ends at byte %d of its shards, which have %d", name, at + length, #bytes)
        )
    end
    local tensor = { name = name, shape = shape }
    local own = bytes:sub(at + 1, at + length)
    if stored == "int32" then
        tensor.dtype, tensor.bytes = "I32", own
        return tensor, length
    end
    if dtype ~= "float32" and dtype ~= "float16" then return tensor, length end
    if quantised[stored] then
        local function number(key) return fields.typed(path, quantisation, prefix .. "quantization.", key, "number") end
        own = dequantised(own, quantised[stored], number "scale", number "min")
        stored = "float32"
    end
    tensor.dtype, tensor.bytes = stored == "float16" and "F16" or "F32", own
    return tensor, length
end

-- The tensors of the decoded model.json `object` at `path`: { name, dtype, shape, bytes }. Raises one line.
function tensorflow_js.tensors(path, object)
    local tensors, known = {}, {}
    for g, group in ipairs(fields.typed(path, object, "", "weightsManifest", "list")) do
        local prefix = string.format("weightsManifest[%d].", g)
        if type(group) ~= "table" then fields.refuse(path, prefix:sub(1, -2), nil, "must be an object") end
        local bytes, at = shards_of(path, group, prefix), 0
        for i, entry in ipairs(fields.typed(path, group, prefix, "weights", "list")) do
            local place = string.format("%sweights[%d]", prefix, i)
            if type(entry) ~= "table" then fields.refuse(path, place, nil, "must be an object") end
            local tensor, length = tensor_of(path, entry, place .. ".", bytes, at)
            if known[tensor.name] then
                fields.refuse(path, place .. ".name", tensor.name, "is the name of another tensor")
            end
            known[tensor.name], at = true, at + length
            tensors[#tensors + 1] = tensor
        end
        if at < #bytes then
            fields.refuse(
                path,
                prefix .. "weights",
                nil,
                string.format("end at byte %d of their shards, which have %d", at, #bytes)
            )
        end
    end
    return tensors
end

return tensorflow_js
