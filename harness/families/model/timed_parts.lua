-- Parts of models that are timed: plans through the same templates with some of the steps, so that their kernels are
-- the same; and the dense twin of a whole model.
local copied = require "gen.schema.copied"
local dtype = require "gen.plan.dtype"
local plan = require "gen.families.model.plan"
local rules = require "gen.families.model.model"
local space = require "gen.plan.space"
local validated = require "gen.schema.validated"

local timed_parts = {}

-- What compilers must not say of them: functions and buffers of other steps stay unused.
timed_parts.cflags = "-Wno-unused"

-- A copy of model `m` with `changes`, and of its attention with `attention`.
function timed_parts.changed(m, changes, attention)
    local copy = copied(m)
    copy.attention = copied(m.attention)
    for key, value in pairs(changes) do
        copy[key] = value
    end
    for key, value in pairs(attention or {}) do
        copy.attention[key] = value
    end
    return copy
end

-- What the model of plan `p` computes blocks from, in bytes; angles are read in part only.
function timed_parts.weight_bytes(p)
    local bytes = p.packed_bytes
    for _, piece in ipairs(p.pieces) do
        if piece.angles then bytes = bytes - 4 * piece.elements end
    end
    return bytes
end

-- The same for a token alone: all but the rows of tables that it does not take.
function timed_parts.bytes_met(p)
    local bytes = timed_parts.weight_bytes(p)
    for _, part in ipairs(p.parts) do
        local own = part.plan
        bytes = bytes
            - part.count
                * dtype.size(own.tables, own.shape.h * own.shape.rows * own.pitch - own.shape.slots * own.shape.d_out)
    end
    return bytes
end

-- As many layers of `bytes` each as it takes to leave nothing in the caches until they come again, at most `most`.
function timed_parts.layers_of(bytes, caches, most) return math.max(1, math.min(-(-4 * caches.l3 // bytes), most)) end

-- Model `m` of plan `p` with as many layers as timing needs and a small vocabulary.
function timed_parts.sample(m, p, caches)
    return timed_parts.changed(m, {
        layers = timed_parts.layers_of(timed_parts.bytes_met(p) // m.layers, caches, m.layers),
        vocab = math.min(m.vocab, 256),
        tied = true,
    })
end

-- The function of plan `p` for many tokens.
function timed_parts.call(p)
    if p.shape.causal then return p.names.prefill end
    return p.shape.sequences and p.names.encode_batch or p.names.encode
end

-- The steps without attention, whose result are the queries; `products`: nor activation and lookup FFNs.
local function steps_left(steps, products)
    local list = {}
    for _, step in ipairs(steps) do
        if step.op == "attend" or products and step.op == "lookup" then
            local width = (step.op == "attend" or step.to == "looked") and step.width or nil
            list[#list + 1] = { op = "copy", from = step.from, to = step.to, width = width, of_call = step.of_call }
        elseif products and step.op == "activate" then
            list[#list + 1] = step.rounded
                and { op = "round", from = step.to, rounded = step.rounded, inputs = step.inputs }
        elseif step.op ~= "append" then
            list[#list + 1] = step
        end
    end
    return list
end

-- The blocks of plan `p` without attention, activation and lookup FFNs: products, and what moves values between them.
-- Reads p's blob.
function timed_parts.products(p)
    local function leave(maps, before, after) return maps, steps_left(before, true), steps_left(after, true) end
    local m = timed_parts.changed(p.model, { name = p.model.name .. "_products" })
    local options = rules.with_types(p.options, { schedule = p.options.schedule, part = leave, digest = p.digest })
    return plan.build(m, { p.variants[1].isa }, options)
end

-- A model with the attention of `m` and nothing else, in so many layers, d wide as its queries; types: { cache,
-- activations, choices }, the names of types and choices of attention; steps: before and after; digest: of another
-- plan's blob that it reads.
local function alone(m, name, layers, isa, types, steps, digest)
    local model = timed_parts.changed(m, {
        name = m.name .. "_" .. name,
        d = rules.q_width(m),
        layers = layers,
        parallel = false,
        skip = false,
        ffn = { kind = "mlp", f = 1, activation = "relu" },
        checkpoint = "llama",
    }, { eliminate = "none" })
    model.attention.qk_norm, model.attention.unit = nil, nil
    model.norm, model.positions, model.token_types, model.head_dim, model.d_in = nil, nil, nil, nil, nil
    return plan.build(model, { isa }, {
        type = types.activations == "i7" and "i8" or types.activations, -- there are no weights
        activations = types.activations,
        cache = types.cache,
        schedule = space.for_all({ isa }, types.choices),
        part = function() return {}, table.unpack(steps) end,
        digest = digest,
    })
end

-- Those of the schedule's choices that concern attention.
local function of_attention(choices)
    local list = {}
    for key, value in pairs(choices) do
        if key:find("^attention%.") then list[key] = value end
    end
    return list
end

-- The steps of attention by tables, which rotates copies of the blocks' input: before, `append` in an encoder, and
-- after, which ends with `output`.
local function tables_alone(shape, append, output)
    local ring = shape.ring
    local attend = { op = "attend", from = "q", to = "mixed", q_codes = "q_codes", width = shape.q }
    if ring then
        attend.k, attend.k_at, attend.v, attend.v_at, attend.k_codes = "k", 0, "in", 0, "k_codes"
    end
    local after = {
        { op = "copy", from = "in", to = "q", width = shape.q },
        attend,
        output,
    }
    return ring and { { op = "copy", from = "in", to = "k", width = shape.q } } or append, after
end

-- The attention of plan `p`, of model `m`, in so many layers, and another plan that only fills the same cache; both
-- read the same blob. Queries, keys and values are all the blocks' input, which is that of each: results would vanish
-- from block to block, as no norm of heads stands between them.
function timed_parts.attention(p, m, layers)
    local isa, types = p.variants[1].isa, { cache = p.options.cache, activations = p.options.activations or "f32" }
    types.choices = of_attention(p.variants[1].schedule)
    local append = { { op = "append", k = "in", k_at = 0, v = "in", v_at = 0 } }
    local output = { op = "output", from = "in" }
    local attend, fill = { { op = "attend", from = "in", to = "mixed" }, output }, { output }
    if p.shape.lsh then
        append, attend = tables_alone(p.shape, append, output)
        fill = attend -- which alone fills those of a decoder
    end
    local attention = alone(m, "attention", layers, isa, types, { append, attend })
    local filling = alone(m, "filling", layers, isa, types, { append, fill }, attention.digest)
    return attention, filling
end

-- The FFN `ffn` of blocks of width `d`, dense where it looks up.
local function dense(ffn, d)
    if ffn.kind ~= "lookup" then return ffn end
    return { kind = "mlp", f = 4 * d, activation = "gelu" }
end

-- Leaves of `attention` what holds without tables: beside norms of heads, or with unit queries and keys.
local function make_exact(attention, qk_norm)
    if attention.kind ~= "lsh" then return end
    for _, key in ipairs { "kind", "tables", "tau", "window", "eps", "seed" } do
        attention[key] = nil
    end
    attention.unit = not qk_norm or nil
end

-- Model `m` with exact attention instead of that by tables, of unit queries and keys, too; nil if it is exact.
function timed_parts.exact(m)
    if not rules.has_tables(m) then return nil end
    local twin = timed_parts.changed(m, { name = m.name .. "_exact" })
    make_exact(twin.attention, m.attention.qk_norm)
    if type(m.layers) == "table" then
        twin.layers = {}
        for i, entry in ipairs(m.layers) do
            local own = copied(entry)
            own.attention = entry.attention and copied(entry.attention)
            if own.attention then make_exact(own.attention, m.attention.qk_norm) end
            twin.layers[i] = own
        end
    end
    twin.tokenizer = nil
    return validated.note_part(twin, m)
end

-- Model `m` with an MLP of f = 4 d and GELU instead of every LookupFFN, and exact attention; nil if it has none.
local function dense_twin(m)
    if not rules.looks_up(m) then return nil end
    m = timed_parts.exact(m) or m
    local changes = { name = m.name .. "_dense", ffn = dense(m.ffn, m.d) }
    if type(m.layers) == "table" then
        changes.layers = {}
        for i, entry in ipairs(m.layers) do
            local own, copy = entry.ffn or m.ffn, copied(entry)
            copy.ffn = dense(own, entry.d or m.d)
            changes.layers[i] = copy
        end
    end
    local twin = timed_parts.changed(m, changes)
    twin.tokenizer = nil
    return validated.note_part(twin, m)
end

-- What a whole model is timed beside: the key of its results, the twin of a model, the stage that they differ in, and
-- the row of timed_parts.left_out that tells it.
timed_parts.twins = {
    { key = "dense", of = dense_twin, stage = "ffn", without = "no_ffn" },
    { key = "exact", of = timed_parts.exact, stage = "attention", without = "no_attention" },
}

-- Model `m` without what stands behind its blocks, but for a pool, before which they may end earlier.
function timed_parts.body(m)
    local body, pool = timed_parts.changed(m, {}), m.output and m.output.pool
    body.output, body.tokenizer = pool and { pool = pool, norm = m.output.norm } or nil, nil
    return validated.note_part(body, m)
end

local function without_attention(maps, before, after) return maps, steps_left(before), steps_left(after) end

local of_ffn = { M = true, G = true, O = true }

-- The steps `steps` with an FFN that copies its input, as wide as its output is: nothing but times depends on values.
local function ffn_left_out(steps)
    local list, from = {}, nil
    for _, step in ipairs(steps) do
        local letter = step.op == "product" and step.map.letter or step.op == "round" and step.letter
        if step.op == "lookup" or step.op == "product" and letter == "O" then
            local width = step.width or step.map.outputs
            list[#list + 1] =
                { op = "copy", from = from or step.from, to = step.to, width = width, of_call = step.of_call }
        elseif of_ffn[letter] then
            from = step.source or from
        elseif step.op == "sum" then
            list[#list + 1] = { op = "sum", a = step.a }
        elseif step.op ~= "activate" then
            list[#list + 1] = step
        end
    end
    return list
end

-- Blocks without an FFN, with `maps` as they are: the weights stay where they are.
local function without_ffn(maps, before, after) return maps, ffn_left_out(before), ffn_left_out(after) end

local function without_both(maps, before, after) return without_ffn(without_attention(maps, before, after)) end

-- Blocks that hand on what they get, by the map of the skip connection where their widths differ; without one, as many
-- values as they have: nothing but times depends on the others.
local function without_blocks(maps, _, after, shape)
    local steps = { { op = "output", from = "in" } }
    if shape.input ~= shape.d then
        local width = math.min(shape.input, shape.d)
        steps = { { op = "copy", from = "in", to = "out", width = width }, { op = "output", from = "out" } }
    end
    for at, step in ipairs(after) do
        if step.op == "product" and step.map.letter == "S" then
            steps = { step, { op = "output", from = step.to } }
            if after[at - 1] and after[at - 1].op == "round" then table.insert(steps, 1, after[at - 1]) end
        end
    end
    return maps, {}, steps
end

-- What is left out of the blocks, by name.
timed_parts.left_out = {
    { name = "no_attention", part = without_attention },
    { name = "no_ffn", part = without_ffn },
    { name = "no_both", part = without_both },
    { name = "no_blocks", part = without_blocks },
}

-- The plan of model `m`, all or some of one, for one instruction set; part: what is left out of its blocks.
function timed_parts.plan(m, isa, wanted, options, part)
    return plan.build(
        m,
        { isa },
        rules.with_types(options, { schedule = wanted, facts = options.facts, part = part, lacks_parts = true })
    )
end

-- µs of each stage from those of the whole and of what is left without its parts, by name. They do not add up exactly:
-- what is left out also leaves the caches to the others.
function timed_parts.stages(us)
    return {
        embedding = us.no_blocks,
        products = us.no_both - us.no_blocks,
        attention = us.body - us.no_attention,
        ffn = us.body - us.no_ffn,
        head = us.whole - us.body,
    }
end

return timed_parts
