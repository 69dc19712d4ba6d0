-- The dense FFNs of a trained model, out of its checkpoint.
local checkpoint = require "gen.schema.checkpoint_names"
local module = require "convert"

local teacher = {}

-- The matrix `view` in the checkpoint c.path, as bytes of float32; nil: it has none. c.spell: what it calls a tensor.
local function read(view, c)
    local own = { tensor = c.spell(view.tensor) }
    for _, key in ipairs { "shape", "rows", "columns", "group", "stride", "offset", "transposed" } do
        own[key] = view[key]
    end
    local bytes, message = module.read(c.path, own)
    if bytes == nil then error(message, 0) end
    return bytes or nil
end
teacher.read = read

-- The FFN of `block`, layer `layer` (from 0) of model `m`: { d, f, activation, and bytes of float32: input, input_bias,
-- gate, gate_bias, output, output_bias }.
function teacher.ffn(m, block, layer, c)
    local own = setmetatable({ ffn = block.ffn, d = block.d }, { __index = m })
    local maps = checkpoint.inputs(own, layer)
    local output = checkpoint.linear(own, layer, "O", block.d, block.ffn.f)
    local gated = block.ffn.kind == "glu"
    return {
        d = block.d,
        f = block.ffn.f,
        activation = block.ffn.activation,
        input = assert(read(maps[1].weight, c)),
        input_bias = read(maps[1].bias, c),
        gate = gated and assert(read(maps[2].weight, c)) or nil,
        gate_bias = gated and read(maps[2].bias, c) or nil,
        output = assert(read(output.weight, c)),
        output_bias = read(output.bias, c),
    }
end

return teacher
