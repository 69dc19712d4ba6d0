-- Counts the weights of a model, and those that blocks can do without (arXiv 2404.12362, section 4).
local ffn_parts = require "gen.schema.ffn_parts"
local lookup_model = require "gen.families.lookup.model"
local rules = require "gen.families.model.model"

local weight_count = {}

-- Weights of the FFN of one block, and those that a token meets: a table's rows that it takes.
local function ffn_weights(m)
    local ffn, dense = m.ffn, ffn_parts.dense(m.ffn)
    local products = dense and (dense.kind == "glu" and 3 or 2) * m.d * dense.f or 0
    if ffn.kind ~= "lookup" then return products, products end
    local bits, projection = ffn.h * ffn.tau
    if ffn.projection.kind == "bh4" then
        local padded = lookup_model.power_of_two_at_least(m.d)
        projection = (bits + padded - 1) // padded * 4 * padded * ffn.projection.block
    else
        projection = m.d * bits
    end
    projection = projection + products
    local a_row = rules.row_width(m)
    return projection + ffn.h * (1 << ffn.tau) * a_row, projection + ffn.h * ffn.neighbours * a_row
end

-- Rows of the embeddings that make the input of the first block.
local function input_rows(m) return m.vocab + (m.positions or 0) + (m.token_types or 0) end

-- What tables of rows of d + 2e instead of d elements add to all blocks, of that the rows that a token takes, and wider
-- embeddings to the model.
local function widened(m, e)
    if not m.attention.eliminate:find("QKV", 1, true) then return 0, 0, 0 end
    local a_row = m.ffn.h * 2 * e * (m.layers - 1)
    return a_row << m.ffn.tau, a_row * m.ffn.neighbours, input_rows(m) * 2 * e
end

-- The counts of blocks `m`; all but the totals and ratios are of one block.
local function of_blocks(m)
    local d, input = m.d, rules.input_width(m)
    local q, e = rules.q_width(m), rules.kv_width(m)
    local per_letter = { Q = input * q, P = q * d, K = input * e, V = input * e }
    local qp, kv, looked = per_letter.Q + per_letter.P, per_letter.K + per_letter.V, nil
    if m.ffn.qkv then
        looked = { rows = m.ffn.h * m.ffn.neighbours * (q + 2 * e), maps = qp + kv }
        qp, kv = 0, 0
    end
    local skip_map = m.skip and m.d_in and d * m.d_in or 0
    local eliminated, word = 0, m.attention.eliminate
    if word ~= "none" then
        for letter in word:gmatch "%u" do
            eliminated = eliminated + per_letter[letter]
        end
    end
    local ffn, ffn_met = ffn_weights(m)
    local embeddings = input * input_rows(m) + d * (m.tied and 0 or m.vocab)
    local c = { e = e, qp = qp, kv = kv, ffn = ffn, embeddings = embeddings, eliminated = eliminated }
    c.skip_map = skip_map > 0 and skip_map or nil
    c.qkv = looked -- weights that a token reads of rows for q, k and v, and those of Q, K, V and P that it would read
    c.block = qp + kv + skip_map + ffn - eliminated -- what is left of it
    local tables, rows, embedding = widened(m, e)
    c.total = m.layers * (qp + kv + skip_map + ffn) + c.embeddings
    c.total_without = c.total - m.layers * eliminated + tables + embedding
    c.savings = 1 - c.total_without / c.total
    local met = c.total - m.layers * (ffn - ffn_met)
    -- as the paper counts, but for rows that a token does not take
    c.speedup = met / (met - m.layers * eliminated + rows)
    return c
end

-- The counts of model `m` (validated); biases and norms are not counted. Of a whole model: embedding, blocks, output,
-- total; a head that is tied to the embedding is counted once.
function weight_count.of(m)
    if not m.embedding then return of_blocks(m) end
    local w, output = rules.widths(m), m.output or {}
    local c = { blocks = 0, layers = {} }
    c.embedding = (m.vocab + (m.positions or 0) + (m.token_types or 0)) * w.embedding
    if w.embedding ~= w.input then c.embedding = c.embedding + w.embedding * w.input end
    for i, segment in ipairs(rules.segments(m)) do
        local own = of_blocks(segment)
        c.layers[i] = { count = segment.layers, weights = own.block, qkv = own.qkv }
        c.blocks = c.blocks + segment.layers * own.block
    end
    c.output = (output.dense and w.last * output.dense.width or 0)
        + (output.classes and w.features * output.classes or 0)
        + (output.head and not m.tied and w.features * m.vocab or 0)
    c.total = c.embedding + c.blocks + c.output
    return c
end

-- Weights that a token meets in all layers of the blocks of plan `p`, at these costs: of linear maps and projections,
-- and of the rows that it takes of tables.
function weight_count.met(p, map_cost, projection_cost, row_cost)
    local sum = 0
    for _, map in ipairs(p.maps) do
        sum = sum + p.shape.layers * map.inputs * map.outputs * map_cost
    end
    for _, part in ipairs(p.parts) do
        local own = part.plan
        sum = sum
            + part.count
                * (own.projection_bytes // 4 * projection_cost + own.shape.slots * own.shape.d_out * row_cost)
    end
    return sum
end

return weight_count
