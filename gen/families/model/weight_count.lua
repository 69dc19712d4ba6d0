-- Counts the weights of a whole model.
local transformer_count = require "gen.families.model.blocks.weight_count"
local whole_model = require "gen.families.model.model"

local weight_count = {}

-- The counts of model `m` (validated): embedding, blocks, output, total; biases and norms are not counted. A head that
-- is tied to the embedding is counted once.
function weight_count.of(m)
    local w, output = whole_model.widths(m), m.output or {}
    local c = { blocks = 0, layers = {} }
    c.embedding = (m.vocab + (m.positions or 0) + (m.token_types or 0)) * w.embedding
    if w.embedding ~= w.input then c.embedding = c.embedding + w.embedding * w.input end
    for i, segment in ipairs(whole_model.segments(m)) do
        local own = transformer_count.of(segment).block
        c.layers[i] = { count = segment.layers, weights = own }
        c.blocks = c.blocks + segment.layers * own
    end
    c.output = (output.dense and w.last * output.dense.width or 0)
        + (output.classes and w.features * output.classes or 0)
        + (output.head and not m.tied and w.features * m.vocab or 0)
    c.total = c.embedding + c.blocks + c.output
    return c
end

return weight_count
