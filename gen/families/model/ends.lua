-- What stands before the first block of a whole model and behind its last one: sections of the blob, and what kernels
-- need to know of them.
local checkpoint = require "gen.schema.checkpoint_names"
local layout = require "gen.families.model.blocks.layout"
local projected = require "gen.families.model.projected"
local sections = require "gen.families.model.sections"
local validated = require "gen.schema.validated"

local ends = {}

-- From ids to the input of the first block, of `widths.input` values; adds its sections to `c`. Returns what kernels
-- need: width of a row, its type, strided: whether its elements lie apart, `panel` rows side by side, positions,
-- token_type, norm, map, projected (see projected.lua). block: the first one as a model, of `shape`.
function ends.embedding(m, widths, block, shape, c)
    local e, names = m.embedding, checkpoint.embeddings(m, widths.embedding, widths.input)
    c.group = "embedding"
    local made = {
        width = widths.embedding,
        input = widths.input,
        scale = e.scale,
        norm = e.norm,
        positions = m.positions ~= nil or e.sinusoidal ~= nil,
        token_type = m.token_types ~= nil,
        type = m.tied and c.type or c.rows,
        strided = m.tied or c.rows.groups ~= nil,
        panel = m.tied and layout.panel or layout.rows,
    }
    if e.projected then
        made.projected = projected.add(c, m, names, block, shape)
        made.input = shape.input
        if not made.projected.copied_at then made.norm = nil end
    end
    local reads_rows = not made.projected or made.projected.reads_rows
    -- A tied embedding is packed for the products of the head.
    if m.tied then
        made.table = sections.add_matrix(
            c,
            "embedding",
            made.width,
            m.vocab,
            names.word,
            "rows of the embedding, the head's"
        )
    elseif reads_rows then
        sections.add_rows(c, "embedding", m.vocab, made.width, names.word, "rows of the embedding")
    end
    if not reads_rows then return made end
    if e.sinusoidal then
        sections.add_sinusoids(c, "positions", m.attention.context, made.width, e.sinusoidal)
    elseif m.positions then
        local first = e.first_position or 0
        local doc = "learned positions" .. (first > 0 and " from row " .. first .. " on" or "")
        sections.add_some_rows(c, "positions", first, m.attention.context, made.width, names.positions, doc)
    end
    if m.token_types then
        sections.add_some_rows(c, "token_type", 0, 1, made.width, names.token_types, "the first token type")
    end
    if made.norm then sections.add_norm(c, "embedding_norm", made.norm, made.width, names.norm, "embeddings") end
    if made.width ~= made.input and not made.projected then
        local rule = checkpoint.without_map(m)
        if rule then validated.refuse(m, { "embedding", "d" }, made.width, rule) end
        made.map = sections.add_map(c, "map", made.width, made.input, names.map, "from rows to the blocks")
    end
    return made
end

-- From the last block's output to the results; adds its sections to `c`.
function ends.output(m, widths, embedding, c)
    local o, names = m.output or {}, checkpoint.output(m, widths.last)
    c.group = "output"
    local made = { width = widths.last, out = widths.out, pool = o.pool, unit = o.unit, norm = o.norm }
    if o.norm then sections.add_norm(c, "output_norm", o.norm, widths.last, names.norm, "the last block's rows") end
    if o.dense then
        local width = o.dense.width
        made.dense = sections.add_map(c, "dense", widths.last, width, names.dense, "the dense map")
        made.dense.activation, made.dense.norm = o.dense.activation, o.dense.norm
        local norm, of = o.dense.norm, "the dense map's rows"
        if norm then sections.add_norm(c, "dense_norm", norm, width, names.dense_norm, of) end
    end
    if o.head then
        made.head = m.tied and embedding.table
            or sections.add_matrix(c, "head", widths.features, m.vocab, names.head.weight, "the head")
        sections.add_bias(c, made.head, "head_bias", o.head.bias and names.head.bias or nil, false)
        made.soft_cap = o.head.soft_cap
    elseif o.classes then
        made.head = sections.add_map(c, "classes", widths.features, o.classes, names.classes, "the classifier")
    end
    return made
end

return ends
