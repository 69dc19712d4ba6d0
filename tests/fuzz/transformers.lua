-- Random small transformers: every elimination, activation, norm and window, dense FFNs and LookupFFNs, each with
-- random types and a random legal schedule.
local dtype = require "gen.plan.dtype"
local family = require("gen.families.model.family").blocks
local fuzz = require "tests.fuzz.fuzz"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.model.plan"
local schedule = require "gen.families.model.blocks.schedule"
local score = require "gen.plan.score"
local words = require "gen.isa.words"

local transformers = {}

-- Of rotary positions, by number.
local scalings = {
    { kind = "linear", factor = 2.5 },
    { kind = "llama3", factor = 8, original = 20, fast = 4 },
    { kind = "yarn", factor = 4, original = 30, fast = 8 },
}

local eliminations = { "none", "Q", "K", "V", "QP", "KP", "VP", "QKV", "QKVP" }
local activations = { "gelu", "gelu_tanh", "silu", "relu" }

-- The FFN of a model of width d.
function transformers.ffn(random, d)
    local function one_of(list) return list[random(1, #list)] end
    local function dense(most)
        return { kind = one_of { "mlp", "glu" }, f = random(1, most), activation = one_of(activations) }
    end
    if random(0, 2) > 0 then return dense(90) end
    local ffn = { kind = "lookup", h = random(1, 12), tau = random(1, 6), score = one_of(score.names) }
    ffn.projection = { kind = "dense" }
    if d > 1 and random(0, 1) == 0 then
        local bits = 1
        while 1 << bits < d do
            bits = bits + 1
        end
        ffn.projection = { kind = "bh4", block = 1 << random(1, bits) }
    end
    if random(0, 2) == 0 then ffn.neighbours = random(2, math.max(2, (1 << ffn.tau) - 1)) end
    if random(0, 2) == 0 then ffn.scale = "1/h" end
    if random(0, 2) == 0 then ffn.dense = dense(40) end
    return ffn
end

-- The table of a model file, perhaps of one that is refused; some widths are half a vector of so many `lanes`, one, or
-- two.
function transformers.drawn(random, name, lanes)
    local function one_of(list) return list[random(1, #list)] end
    local heads, width = random(1, 5), random(1, 20)
    if random(0, 2) == 0 then
        heads, width = random(1, 2), math.max(1, lanes << random(0, 2) >> 1)
    end
    local m = { name = name or "fuzz", heads = heads, d = heads * width, layers = random(1, 3), vocab = 20 }
    m.kv_heads = one_of { heads, 1, random(1, heads) }
    m.parallel, m.skip = random(0, 3) == 0, random(0, 2) == 0
    if random(0, 2) == 0 then
        m.norm = { kind = one_of { "layernorm", "rmsnorm" }, place = m.skip and one_of { "pre", "post" } or nil }
    end
    m.checkpoint = one_of { "llama", "llama", "llama", "gpt_neox", "roberta", "gpt2", "mingpt", "lookupffn", "use" }
    m.attention = { eliminate = one_of(eliminations), context = random(1, 120), causal = random(0, 3) > 0 }
    if random(0, 2) == 0 then m.attention.window = random(1, m.attention.context) end
    if random(0, 3) == 0 then m.attention.scale = 0.25 end
    if random(0, 1) == 0 then
        m.attention.rope = { share = one_of { 1, 0.5 }, pairs = one_of { "half", "interleaved" } }
    end
    m.ffn = transformers.ffn(random, m.d)
    if random(0, 5) == 0 then
        m.head_dim, m.attention.eliminate = random(1, 24), "none"
    end
    if random(0, 5) == 0 then
        m.d_in, m.layers, m.attention.eliminate = random(1, 100), 1, "none"
    end
    if not m.attention.window and random(0, 3) == 0 then m.attention.shaped = true end
    -- Without a draw, so that all else stays as it is drawn.
    local a, number = m.attention, m.d + m.layers + m.attention.context
    if a.window and m.layers > 1 and number % 2 == 0 then a.full_layers = { number % m.layers } end
    if number % 5 == 0 then a.soft_cap = 2 end
    if m.checkpoint == "llama" and number % 3 == 0 then a.qk_norm = { eps = 0.1 } end
    if m.checkpoint == "llama" and m.norm and m.norm.place ~= "post" and number % 2 == 0 then m.norm.place = "both" end
    if m.checkpoint == "llama" and number % 7 < 2 then m.checkpoint = number % 7 == 0 and "gemma" or "phi3" end
    if not (a.qk_norm or a.scale) and number % 4 == 1 then a.unit = true end
    if number % 3 == 1 then a.shifted = 1 + number % m.kv_heads end
    if m.ffn.kind == "lookup" and number % 4 == 2 then
        m.ffn.qkv, m.ffn.dense, m.parallel, m.head_dim, m.d_in, a.eliminate = true, nil, true, nil, nil, "none"
        if m.norm then m.norm.place = "pre" end
    end
    if m.parallel and m.norm and m.norm.place ~= "post" and not m.ffn.qkv and number % 2 == 1 then
        m.norm.shared = true
    end
    local apart = m.ffn.qkv or a.eliminate:find("V", 1, true) or a.shaped or a.qk_norm or a.unit or a.shifted
    local square = m.kv_heads == m.heads and not m.head_dim and not m.d_in
    if a.causal and square and not apart and number % 2 == 1 then a.cache = "k" end
    if number % 8 == 4 then
        a.kind, a.tables, a.tau, a.window = "lsh", 1 + number % 5, 1 + number % 6, math.min(number % 7, a.context)
        for _, key in ipairs { "unit", "scale", "soft_cap", "cache", "shaped", "full_layers" } do
            a[key] = nil
        end
    end
    if a.rope then a.rope.scaling = scalings[number % 6] end
    return m
end

-- Model number `index` for vectors of so many `lanes`, as the table of a model file, and the validated model: the first
-- drawn one that is none of the refused.
function transformers.model(index, name, lanes)
    local random = fuzz.generator(index * 15485863 + 11)
    for _ = 1, 8 do
        random(0, 1)
    end
    while true do
        local m = transformers.drawn(random, name, lanes)
        local good, valid = pcall(model.validate, m, "", m.name)
        if good and not plan.misfit(valid) then return m, valid, random end
    end
end

-- A random legal schedule for the instruction set `set`; chunks stay small.
function transformers.schedule(random, shape, set)
    local function tokens_of(key) return key == "chunk.tokens" and 1 or nil end
    return fuzz.chosen(random, schedule.choices, shape, set, 96, tokens_of)
end

-- Random types for kernels of model `m` for the instruction sets `sets`, as options; inputs of products are rounded
-- only where all of them have words for that.
function transformers.types(random, sets, m)
    local options = {
        type = dtype.type_names[random(1, #dtype.type_names)],
        cache = dtype.cache_names[random(1, #dtype.cache_names)],
    }
    local weights = dtype.get(options.type, "type")
    local beside = weights.activations or options.type -- what inputs may be rounded to
    local products = (weights.activations and dtype.get(beside, "activations") or weights).products
    local rounds = products and random(0, 1) == 1
    for _, set in ipairs(sets) do
        for _, tier in ipairs(products and products.tiers or {}) do
            rounds = rounds and words.missing(set, tier) == nil
        end
    end
    options.activations = rounds and beside or nil
    local bytes = options.activations == "i8" and options.type == "i8"
    if bytes and random(0, 1) == 0 then options.activations = "i7" end
    -- Some caches are words of products only.
    local cache = dtype.get(options.cache, "cache")
    local beside_words = options.activations == cache.name and not m.attention.cache
    if m.attention.kind and not cache.integer_gather or cache.cache.words_only and not beside_words then
        options.cache = nil
    end
    local looks_up = m.ffn.kind == "lookup"
    for _, layer in ipairs(type(m.layers) == "table" and m.layers or {}) do
        looks_up = looks_up or layer.ffn and layer.ffn.kind == "lookup"
    end
    if looks_up and random(0, 1) == 0 then
        options.tables = dtype.names[random(1, #dtype.names)]
        options.projection = dtype.projection_names[random(1, #dtype.projection_names)]
        options["multiply-out"] = random(0, 3) == 0 or nil
    end
    return options
end

-- The plan of model number `index` for the instruction sets `sets`, each with a random schedule, and the model as the
-- table of a model file.
function transformers.plan(index, sets, name)
    local given, m, random = transformers.model(index, name, sets[1].lanes)
    local options = transformers.types(random, sets, m)
    options.schedule = {}
    if m.attention.shaped then options.cache = "f32" end
    if not m.attention.causal and random(0, 1) == 0 then options.sequences = { positions = random(1, 400) } end
    local shape, types = plan.build(m, sets, options).shape, family.isa_types(options, m)
    for _, set in ipairs(sets) do
        options.schedule[set.name] = transformers.schedule(random, shape, isa.with_types(set, types))
    end
    return plan.build(m, sets, options), given
end

return transformers
