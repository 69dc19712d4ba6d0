-- The bytes of a safetensors file out of tensors that are already bytes.
local json = require "json"

local safetensors_bytes = {}

-- tensors: { { name, dtype, shape, bytes } } in the order of the file.
function safetensors_bytes.of(tensors)
    local header, parts, at = {}, { "" }, 0
    for i, tensor in ipairs(tensors) do
        header[tensor.name] = {
            dtype = tensor.dtype,
            shape = json.array(tensor.shape),
            data_offsets = { at, at + #tensor.bytes },
        }
        at, parts[i + 1] = at + #tensor.bytes, tensor.bytes
    end
    local text = assert(json.encode(header, "compact"))
    text = text .. (" "):rep(-#text % 8)
    parts[1] = string.pack("<I8", #text) .. text
    return table.concat(parts)
end

return safetensors_bytes
