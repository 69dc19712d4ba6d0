-- Parts of a transformer's blocks that are timed alone: plans through the same templates with some of the steps, so
-- that their kernels are the same.
local space = require "gen.plan.space"
local rules = require "gen.families.model.model"
local transformer_plan = require "gen.families.model.blocks.plan"

local parts = {}

-- What compilers must not say of them: functions and buffers of other steps stay unused.
parts.cflags = "-Wno-unused"

-- A copy of model `m` with `changes`, and of its attention with `attention`.
function parts.changed(m, changes, attention)
    local copy = { attention = {} }
    for key, value in pairs(m) do
        if key ~= "attention" then copy[key] = value end
    end
    for key, value in pairs(m.attention) do
        copy.attention[key] = value
    end
    for key, value in pairs(changes) do
        copy[key] = value
    end
    for key, value in pairs(attention or {}) do
        copy.attention[key] = value
    end
    return copy
end

-- What the model of plan `p` computes blocks from, in bytes; angles are read in part only.
function parts.weight_bytes(p)
    local bytes = p.packed_bytes
    for _, piece in ipairs(p.pieces) do
        if piece.angles then bytes = bytes - 4 * piece.elements end
    end
    return bytes
end

-- The same for a token alone: all but the rows of tables that it does not take.
function parts.bytes_met(p)
    local bytes = parts.weight_bytes(p)
    for _, part in ipairs(p.parts) do
        local own = part.plan
        bytes = bytes
            - part.count
                * (own.shape.h * own.shape.rows * own.pitch - own.shape.slots * own.shape.d_out)
                * own.shape.tables.bytes
    end
    return bytes
end

-- As many layers of `bytes` each as it takes to leave nothing in the caches until they come again, at most `most`.
function parts.layers_of(bytes, caches, most) return math.max(1, math.min(-(-4 * caches.l3 // bytes), most)) end

-- Model `m` of plan `p` with as many layers as timing needs and a small vocabulary.
function parts.sample(m, p, caches)
    return parts.changed(m, {
        layers = parts.layers_of(parts.bytes_met(p) // m.layers, caches, m.layers),
        vocab = math.min(m.vocab, 256),
        tied = true,
    })
end

-- The function of plan `p` for many tokens.
function parts.call(p)
    if p.shape.causal then return p.names.prefill end
    return p.shape.sequences and p.names.encode_batch or p.names.encode
end

local function without_attention(steps)
    local list = {}
    for _, step in ipairs(steps) do
        if step.op == "attend" or step.op == "lookup" then
            local width = step.op == "attend" and step.width or nil
            list[#list + 1] = { op = "copy", from = step.from, to = step.to, width = width }
        elseif step.op == "activate" and step.rounded then
            list[#list + 1] = { op = "round", from = step.to, rounded = step.rounded, inputs = step.inputs }
        elseif step.op ~= "append" and step.op ~= "activate" then
            list[#list + 1] = step
        end
    end
    return list
end

-- The blocks of plan `p` without attention, activation and lookup FFNs: products, and what moves values between them.
-- Reads p's blob.
function parts.products(p)
    local function leave(maps, before, after) return maps, without_attention(before), without_attention(after) end
    local part = transformer_plan.build(
        parts.changed(p.model, { name = p.model.name .. "_products" }),
        { p.variants[1].isa },
        {
            type = p.shape.type.name,
            cache = p.shape.cache.type.name,
            activations = p.options.activations,
            tables = p.options.tables,
            projection = p.options.projection,
            schedule = p.options.schedule,
            part = leave,
        }
    )
    part.digest = p.digest
    return part
end

-- A model with the attention of `m` and nothing else, in so many layers, d wide as its queries; types: { cache,
-- activations, choices }, the names of types and choices of attention.
local function alone(m, name, layers, isa, types, append, after)
    local model = parts.changed(m, {
        name = m.name .. "_" .. name,
        d = rules.q_width(m),
        layers = layers,
        parallel = false,
        skip = false,
        ffn = { kind = "mlp", f = 1, activation = "relu" },
        checkpoint = "llama",
    }, { eliminate = "none" })
    model.norm, model.positions, model.token_types, model.head_dim, model.d_in = nil, nil, nil, nil, nil
    return transformer_plan.build(model, { isa }, {
        type = types.activations,
        activations = types.activations,
        cache = types.cache,
        schedule = space.for_all({ isa }, types.choices),
        part = function() return {}, append, after end,
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

-- The attention of plan `p`, of model `m`, in so many layers, and another plan that only fills the same cache; both
-- read the same blob. Queries, keys and values are all the blocks' input.
function parts.attention(p, m, layers)
    local isa, types = p.variants[1].isa, { cache = p.options.cache, activations = p.options.activations or "f32" }
    types.choices = of_attention(p.variants[1].schedule)
    local append = { { op = "append", k = "in", k_at = 0, v = "in", v_at = 0 } }
    local attention = alone(
        m,
        "attention",
        layers,
        isa,
        types,
        append,
        { { op = "attend", from = "in", to = "mixed" }, { op = "output", from = "mixed" } }
    )
    local filling = alone(m, "filling", layers, isa, types, append, { { op = "output", from = "in" } })
    filling.digest = attention.digest
    return attention, filling
end

return parts
