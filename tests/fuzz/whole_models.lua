-- Random small whole models: every kind of embedding and output around random blocks, with random types and schedules.
local dtype = require "gen.plan.dtype"
local family = require("gen.families.model.family").whole
local fuzz = require "tests.fuzz.fuzz"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.model.plan"
local transformers = require "tests.fuzz.transformers"

local whole_models = {}

-- Attention `a` by tables if it is exact, and the other way round.
local function other_attention(a)
    if a.kind == "lsh" then return { kind = "exact", unit = not a.qk_norm or nil } end
    return { kind = "lsh", tables = 3, tau = 2, window = math.min(5, a.context) }
end

-- What stands before and behind the blocks of the transformer `m`, perhaps of one that is refused; some projected keys
-- are a vector of so many `lanes`.
local function wrapped(random, m, lanes)
    local function one_of(list) return list[random(1, #list)] end
    local function some(share, value)
        if random(0, share) == 0 then return value end
    end
    local function norm() return { kind = one_of { "layernorm", "rmsnorm" }, eps = one_of { 1e-5, 1e-2 } } end
    local function activation() return one_of { "tanh", "gelu", "gelu_tanh", "relu" } end
    m.vocab, m.embedding, m.output = random(1, 70), {}, {}
    m.embedding.d, m.embedding.scale, m.embedding.norm = some(2, random(1, 40)), some(2, 1.5), some(2, norm())
    m.token_types = some(2, 2)
    local place = random(0, 2)
    if place == 0 then
        m.embedding.first_position = some(1, random(0, 3))
        m.positions = m.attention.context + random(0, 4) + (m.embedding.first_position or 0)
    elseif place == 1 then
        m.embedding.sinusoidal =
            { order = one_of { "halves", "interleaved" }, steps = one_of { "n", "n-1" }, max = 1000 }
    end
    if not m.parallel and m.attention.eliminate == "none" and random(0, 2) == 0 then
        m.embedding.projected, m.embedding.d = true, nil
        if random(0, 2) == 0 then
            m.kv_heads, m.head_dim = 1, lanes
        end
        if m.norm and m.norm.place ~= "post" then m.embedding.norm = nil end
    end
    m.output.norm = some(1, norm())
    if not m.attention.causal then m.output.pool = some(0, one_of { "mean", "first", "last", "sqrt_n" }) end
    m.output.dense = some(2, { width = random(1, 80), activation = some(1, activation()), norm = some(2, norm()) })
    local last = random(0, 3)
    if last == 0 then
        m.output.unit = true
    elseif last == 1 then
        m.output.classes = random(1, 70)
    elseif last == 2 then
        m.output.head, m.tied = { bias = some(1, true), soft_cap = some(1, 4) }, some(1, true)
    end
    if random(0, 2) == 0 then
        local own = { d = m.d, count = random(1, 2) }
        m.layers = { { d = m.d, ffn = m.ffn }, own }
        if random(0, 1) == 0 then
            own.ffn = transformers.ffn(random, m.d)
        elseif m.ffn.kind ~= "lookup" then
            own.ffn = { kind = m.ffn.kind, f = m.ffn.f + 3, activation = m.ffn.activation }
        end
        if random(0, 1) == 0 then m.layers[1].d_in = random(1, 50) end
        m.d_in = nil
        if own.count == 2 then own.attention = other_attention(m.attention) end
    end
    m.tokenizer = some(5, { kind = "bytes" })
    if m.tokenizer then m.vocab = 256 end
    return m
end

-- Plans with weights in groups that are given a checkpoint which is quantised already.
whole_models.quantised = setmetatable({}, { __mode = "k" })

-- The plan of model number `index` for the instruction sets `sets`, each with a random schedule, and the model as the
-- table of a model file: the first drawn one that is none of the refused.
function whole_models.plan(index, sets, name)
    local random = fuzz.generator(index * 32452843 + 7)
    for _ = 1, 8 do
        random(0, 1)
    end
    local lanes = sets[1].lanes
    while true do
        local given = wrapped(random, transformers.drawn(random, name, lanes), lanes)
        local good, m = pcall(model.validate, given, "", given.name)
        local options = transformers.types(random, sets, given)
        for _, part in ipairs { "head", "embedding" } do
            local own = dtype.type_names[random(1, #dtype.type_names)]
            if random(0, 2) == 0 then options.type = ("%s,%s=%s"):format(options.type, part, own) end
        end
        options.schedule = {}
        local planned, p = pcall(plan.build, good and m, sets, options)
        if good and planned then
            local types = family.isa_types(options, m)
            for _, set in ipairs(sets) do
                options.schedule[set.name] = transformers.schedule(random, p.shape, isa.with_types(set, types))
            end
            local own, types_of = plan.build(m, sets, options), dtype.of_parts(options.type)
            local groups = types_of.blocks.groups or types_of.head.groups or types_of.embedding.groups
            whole_models.quantised[own] = groups and random(0, 1) == 0 or nil
            return own, given
        end
    end
end

return whole_models
