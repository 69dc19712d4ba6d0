-- What one instruction set's kernels of a transformer are planned as: scratch, products, attention and names.
local attention = require "gen.families.model.blocks.attention"
local blob = require "gen.plan.blob"
local block_lookup = require "gen.families.model.blocks.block_lookup"
local layout = require "gen.families.model.blocks.layout"
local names = require "gen.schema.names"
local product = require "gen.families.model.blocks.product"
local schedule = require "gen.families.model.blocks.schedule"

local variant = {}

local cache_line = blob.align // 4

-- Buffers in scratch, { name, pitch, at, storage }, in floats, or words where rounded inputs are stored: behind each
-- other as many rows of `pitch` of each as a call has tokens, a chunk at most, from tokens * at on; and of what tokens
-- need that attend together, a group of heads each, from so many tokens * at on. A call for few tokens needs little
-- scratch. of_call: { name, pitch } of what is kept of all tokens of a call, or nil.
local function buffers_of(shape, before, after, lanes)
    local buffers = {
        tokens = {},
        queries = {},
        pitches = { ["in"] = shape.delivered and "in_step" or shape.input },
        token_floats = 0,
        query_floats = 0,
        tile_floats = attention.tile_floats(shape),
    }
    local function add(name, pitch, storage)
        table.insert(
            buffers.tokens,
            { name = name, pitch = pitch, at = buffers.token_floats, storage = storage or "float" }
        )
        buffers.pitches[name], buffers.token_floats = pitch, buffers.token_floats + pitch
    end
    for _, steps in ipairs { before, after } do
        for _, step in ipairs(steps) do
            if step.of_call then
                local pitch = layout.pitch(step.map and step.map.outputs or step.width)
                buffers.of_call, buffers.pitches[step.to] = { name = step.to, pitch = pitch }, pitch
            elseif step.to and not buffers.pitches[step.to] then
                add(step.to, layout.pitch(step.map and step.map.outputs or step.width or shape.d))
            end
            local rounded = step.rounded
            if rounded and not buffers.pitches[rounded] then
                add(rounded, layout.rounded_pitch(step.inputs, shape.rounded), shape.rounded.storage)
            end
            local function add_codes(codes, heads)
                if codes then add(codes, blob.round_up(heads * shape.lsh.tables, 2 * cache_line) // 2, "uint16_t") end
            end
            add_codes(step.q_codes, shape.heads)
            add_codes(step.k_codes, shape.kv_heads)
        end
    end
    if shape.lsh then
        -- In an encoder a few tables are filled at a time. Hashes work in z, beside heads that are transposed; it lies
        -- last, since all instruction sets share the places of the others.
        if not shape.causal then
            buffers.queries[1] = { name = "table", at = 0, storage = "float" }
            local elements = shape.lsh.together * shape.lsh.rows * shape.cache.pitch
            buffers.query_floats = blob.round_up(elements * shape.cache.row.bytes // 4, cache_line)
        end
        table.insert(buffers.queries, { name = "z", at = buffers.query_floats, storage = "float" })
        local floats = (lanes > 1 and 2 or 1) * shape.lsh.padded * lanes
        buffers.query_floats = blob.round_up(buffers.query_floats + floats, cache_line)
        return buffers
    end
    local of_queries = {
        { "queries", shape.width },
        { "sums", shape.cache.pitch },
        { "scores", layout.keys },
    }
    local words = shape.cache.words
    if words then
        of_queries[4] = { "rounded_queries", attention.query_step(shape), words.storage }
        of_queries[5] = { "rounded_weights", layout.keys // words.rows, words.storage }
    end
    if shape.from_keys and shape.rounded then
        of_queries[4] = { "rounded_sums", layout.rounded_pitch(shape.e, shape.rounded), shape.rounded.storage }
    end
    if shape.from_keys and shape.width % layout.panel > 0 then
        -- of a head, with those of other heads in its first and last panel
        buffers.head_pitch = blob.round_up(shape.width, layout.panel) + layout.panel
        table.insert(of_queries, { "head_values", buffers.head_pitch })
    end
    table.insert(of_queries, { "totals", lanes }) -- last: all instruction sets share the places of the others
    for _, row in ipairs(of_queries) do
        table.insert(buffers.queries, { name = row[1], at = buffers.query_floats, storage = row[3] or "float" })
        buffers.query_floats = blob.round_up(buffers.query_floats + shape.group * row[2], cache_line)
    end
    return buffers
end

-- The kernels of plan `p` for one instruction set, number `number` of the bundle, with the schedule `choices`;
-- shared_product: as run.build takes it.
function variant.of(p, isa, choices, number, shared_product)
    local shape, name = p.shape, p.model.name
    local v = {
        isa = isa,
        schedule = choices,
        schedule_text = schedule.text(choices),
        choices_text = schedule.used_text(choices),
        chunk = choices["chunk.tokens"],
        queries = math.min(choices["attention.tokens"], choices["chunk.tokens"]),
        product = product.plan(choices, isa, shape.type, shape.rounded, p.one_by_one),
        attention = not shape.lsh and attention.plan(shape, choices, isa),
    }
    v.rows = v.queries * shape.group
    v.buffers = buffers_of(shape, p.before, p.after, isa.lanes)
    v.number, v.lookup_floats = number, block_lookup.scratch_floats(p.parts, number) -- of a token alone, of any number
    if p.one_by_one then v.lookup_floats.many = v.lookup_floats.alone end
    v.decode_scratch_bytes = 4 * (v.lookup_floats.alone + v.buffers.tile_floats)
        + 4 * (v.buffers.token_floats + v.buffers.query_floats)
    v.scratch_bytes = 4 * (v.lookup_floats.many + v.buffers.tile_floats)
        + 4 * (v.chunk * v.buffers.token_floats + v.queries * v.buffers.query_floats)
    -- Several tokens share what converting a strip of weights takes: its floats, from so many of scratch on.
    if v.product.unpacks and #p.maps > 0 then
        v.unpacked_at = blob.round_up(v.scratch_bytes, blob.align) // 4
        v.scratch_bytes = 4 * (v.unpacked_at + v.product.unpacked_floats)
    end
    if v.buffers.of_call then
        v.of_call_at = blob.round_up(v.scratch_bytes, blob.align) // 4
        v.scratch_bytes = 4 * (v.of_call_at + shape.most_tokens * v.buffers.of_call.pitch)
    end
    local shared = shared_product and shared_product(number, isa, v.product)
    v.shares_product = shared ~= nil
    v.names = {
        product = shared or names.variant(name, product.name(shape.type, shape.rounded), isa.name),
        attention = names.variant(name, "attention_" .. (shape.lsh and "lsh" or shape.cache.type.name), isa.name),
        blocks = names.variant(name, shared_product and "run" or "blocks", isa.name),
    }
    return v
end

return variant
