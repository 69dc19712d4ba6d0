-- Hidden neurons of a trained dense FFN that stay as they are, in the dense FFN beside a lookup FFN: their tensors.
local checkpoint = require "gen.schema.checkpoint_names"
local matrix = require "harness.convert.matrix"

local kept_neurons = {}

-- The tensors by name, { shape, bytes }, of the neurons `numbers` (from 1) of `dense`, an FFN as teacher.ffn reads it,
-- in the dense FFN of `block`, layer `layer` (from 0) of model `m`. Its output has the bias of the whole FFN's, which
-- is the checkpoint's.
function kept_neurons.tensors(m, block, layer, dense, numbers)
    local own, tensors = setmetatable({ ffn = block.ffn, d = block.d }, { __index = m }), {}
    local function add(view, bytes) tensors[view.tensor] = { shape = view.shape, bytes = bytes } end
    local function add_input(map, weights, biases)
        local rows, v = matrix.rows(weights, numbers, dense.d), map.weight
        add(v, v.transposed and matrix.transposed(rows, dense.d) or rows)
        if biases then add(map.bias, matrix.rows(biases, numbers, 1)) end
    end
    local inputs = checkpoint.inputs(own, layer)
    add_input(inputs[1], dense.input, dense.input_bias)
    if dense.gate then add_input(inputs[2], dense.gate, dense.gate_bias) end
    local output = checkpoint.linear(own, layer, "O", block.d, #numbers).weight
    local columns = matrix.columns_as_rows(dense.output, numbers, dense.f)
    add(output, output.transposed and columns or matrix.transposed(columns, dense.d))
    return tensors
end

return kept_neurons
