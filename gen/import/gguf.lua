-- Turns the metadata and tensors of a GGUF file into the table of a model file.
local dtype = require "gen.plan.dtype"
local fields = require "gen.import.fields"
local rope = require "gen.families.model.blocks.rope"
local weights = require "weights"

local gguf = {}

-- What the rows of Gemma share.
local function gemma(more)
    more.checkpoint, more.norm, more.ffn, more.activation, more.pairs = "gguf", "rmsnorm", "glu", "gelu_tanh", "half"
    more.scaled = true
    return more
end

-- One row an architecture: the kind of its tensor names, and what differs. pairs: which values of a head rope turns
-- together; files of a llama have rows of q and k in another order than transformers. Files do not name the activation.
-- place, scaled, caps, head_bias, window: as in gen/import/config_json.lua; packed: the kind where q, k and v are one
-- tensor; shared: blocks are parallel with one norm; wide: the number of layers where heads of the only size that has
-- so many divide q k by sqrt(d / heads).
local architectures = {
    llama = { checkpoint = "gguf", norm = "rmsnorm", ffn = "glu", activation = "silu", pairs = "interleaved" },
    qwen2 = { checkpoint = "gguf", norm = "rmsnorm", ffn = "glu", activation = "silu", pairs = "half" },
    qwen3 = { checkpoint = "gguf", norm = "rmsnorm", ffn = "glu", activation = "silu", pairs = "half", qk_norm = true },
    gemma = gemma {},
    gemma2 = gemma { place = "both", window = { default = 4096, turn = 2 }, caps = { 50, 30 }, wide = 46 },
    phi2 = {
        checkpoint = "gguf",
        packed = "gguf_gpt2",
        norm = "layernorm",
        ffn = "mlp",
        activation = "gelu_tanh",
        pairs = "half",
        shared = true,
        head_bias = true,
    },
    phi3 = {
        checkpoint = "gguf_phi3",
        norm = "rmsnorm",
        ffn = "glu",
        activation = "silu",
        pairs = "half",
        window = { default = 0 },
    },
    gpt2 = { checkpoint = "gguf_gpt2", norm = "layernorm", ffn = "mlp", activation = "gelu_tanh" },
    bert = { checkpoint = "gguf_bert", norm = "layernorm", ffn = "mlp", activation = "gelu", encoder = true },
}

-- pooling_type: 0 and on.
local pools = { {}, { pool = "mean" }, { pool = "first" }, { pool = "last" } }

-- The shortest number that is `value` as float32, in which files have numbers.
local function decimal(value)
    for digits = 1, 9 do
        local short = tonumber(string.format("%." .. digits .. "g", value))
        if string.pack("<f", short) == string.pack("<f", value) then return short end
    end
    return value
end

-- Reads the keys of `metadata` that begin with the architecture's name; raises one line for a wrong one.
local function reader(path, metadata, architecture)
    local r, own, asked, prefix = {}, {}, {}, architecture .. "."
    for key, value in pairs(metadata) do
        if key:sub(1, #prefix) == prefix then own[key:sub(#prefix + 1)] = value end
    end
    function r.get(key, kind, otherwise)
        asked[key] = true
        return fields.typed(path, own, prefix, key, kind, otherwise)
    end
    function r.refuse(key, rule) fields.refuse(path, prefix .. key, own[key], rule) end
    function r.count(key, otherwise)
        local value = r.get(key, "integer", otherwise)
        if value < 1 then r.refuse(key, "must be at least 1") end
        return value
    end
    function r.number(key, otherwise)
        local value = r.get(key, "number", otherwise)
        if value - value ~= 0 then r.refuse(key, "must be finite") end
        return decimal(value)
    end
    function r.skip(...)
        for _, key in ipairs { ... } do
            asked[key] = true
        end
    end
    -- Refuses what nobody has asked for, unless it changes nothing.
    function r.done()
        local keys = {}
        for key, value in pairs(own) do
            if not asked[key] and value and value ~= 0 then keys[#keys + 1] = key end
        end
        table.sort(keys)
        if keys[1] then r.refuse(keys[1], "is not known here") end
    end
    return r
end

-- The rows of the tensor `name` of the file, or nil.
local function rows_of(tensors, name) return tensors[name] and tensors[name].shape[1] end

-- Kinds of rope.scaling.type: what a model file says of them.
local scalings = { none = function() end }

function scalings.linear(r) return { kind = "linear", factor = r.number "rope.scaling.factor" } end

function scalings.yarn(r)
    local s = {
        kind = "yarn",
        factor = r.number "rope.scaling.factor",
        original = r.count("rope.scaling.original_context_length", r.count "context_length"),
        slow = r.number("rope.scaling.yarn_beta_slow", 1),
        fast = r.number("rope.scaling.yarn_beta_fast", 32),
    }
    local own = r.number("rope.scaling.attn_factor", 1.0)
    if own ~= 1 then s.attention_factor = own * (0.1 * math.log(s.factor) + 1) end
    return s
end

-- The rotary positions of model `m`.
local function rope_of(r, m, kind)
    local width = m.head_dim or m.d // m.heads
    local rotated = r.count("rope.dimension_count", width)
    if rotated > width or rotated % 2 ~= 0 then
        r.refuse("rope.dimension_count", "must be even and at most " .. width)
    end
    local scaling = scalings[r.get("rope.scaling.type", "string", "none")]
    if not scaling then r.refuse("rope.scaling.type", "must be none, linear or yarn") end
    scaling = scaling(r)
    for _, key in ipairs { "factor", "original_context_length", "attn_factor", "finetuned" } do
        r.skip("rope.scaling." .. key)
    end
    local theta = r.number("rope.freq_base", 10000.0)
    return { theta = theta, share = rotated / width, pairs = kind.pairs, scaling = scaling }
end

-- The scaling of Llama 3, of which files have what it divides each frequency of `given` by, of heads of `width`.
local function scaling_of_factors(path, given, width)
    local half, name = math.floor(given.share * width / 2), "rope_freqs.weight"
    local factors, message = weights.values(path, name, half)
    if not factors then error(message, 0) end
    local found = { kind = "llama3", factor = 1.0, original = 8192, slow = 1, fast = 4 }
    for _, factor in ipairs(factors) do
        found.factor = math.max(found.factor, decimal(factor))
    end
    local plain = rope.frequencies({ theta = given.theta }, half)
    local scaled = rope.frequencies({ theta = given.theta, scaling = found }, half)
    local same = #factors == half and not given.scaling
    for i, factor in ipairs(factors) do
        same = same and math.abs(plain[i] / scaled[i] / factor - 1) < 1e-5
    end
    if not same then
        error(path .. ": tensor " .. name .. ": must be the factors of Llama 3, of a context of 8192", 0)
    end
    return found
end

-- Adds to the rotary positions of `m` what tensors of the file say of their scaling.
local function add_factors(path, m, tensors)
    for _, name in ipairs { "rope_factors_long.weight", "rope_factors_short.weight" } do
        local rule = ": frequencies that change with the length of the text are not known here"
        if tensors[name] then error(path .. ": tensor " .. name .. rule, 0) end
    end
    if tensors["rope_freqs.weight"] then
        m.attention.rope.scaling = scaling_of_factors(path, m.attention.rope, m.head_dim or m.d // m.heads)
    end
end

-- The soft cap in the field `key`, or that number `i` of the kind's; nil: none.
local function cap_of(r, kind, key, i)
    local cap = kind.caps and r.number(key, kind.caps[i] + 0.0) or 0
    return cap ~= 0 and cap or nil
end

-- Adds to the attention of `m` its window, with the layers that have none, its soft cap and its scale.
local function add_attention(r, m, kind)
    local a, rule = m.attention, kind.window
    a.soft_cap = cap_of(r, kind, "attn_logit_softcapping", 1)
    if m.layers == kind.wide then a.scale = (m.d / m.heads) ^ -0.5 end
    if not rule then return end
    local window, least = r.get("attention.sliding_window", "integer", rule.default), math.min(rule.default, 1)
    if window < least then r.refuse("attention.sliding_window", "must be at least " .. least) end
    a.window = window > 0 and math.min(window, a.context) or nil
    if not rule.turn then return end
    a.full_layers = {}
    for layer = rule.turn - 1, m.layers - 1, rule.turn do
        table.insert(a.full_layers, layer)
    end
end

-- Adds to `m` what stands before and behind the blocks.
local function add_ends(m, r, kind, tensors)
    m.embedding = { scale = kind.scaled and m.d ^ 0.5 or nil }
    if kind.encoder then
        m.embedding.norm = { kind = m.norm.kind, eps = m.norm.eps }
        local pooling = r.get("pooling_type", "integer", 0)
        m.output = pools[pooling + 1] or r.refuse("pooling_type", "must be from 0 to " .. #pools - 1)
    else
        local cap = cap_of(r, kind, "final_logit_softcapping", 2)
        m.output = { norm = { kind = m.norm.kind, eps = m.norm.eps }, head = { bias = kind.head_bias, soft_cap = cap } }
        m.tied = not tensors["output.weight"]
    end
end

-- The table of a model file, with the name as it stands there, and the architecture.
local function model_of(path, metadata, tensors, options)
    local architecture = fields.typed(path, metadata, "", "general.architecture", "string")
    local kind = architectures[architecture]
    if not kind then
        local known = {}
        for name in pairs(architectures) do
            known[#known + 1] = name
        end
        table.sort(known)
        fields.refuse(path, "general.architecture", architecture, "must be one of " .. table.concat(known, ", "))
    end
    local r = reader(path, metadata, architecture)
    local m = {
        name = fields.typed(path, metadata, "", "general.name", "string", architecture),
        d = r.count "embedding_length",
        heads = r.count "attention.head_count",
        layers = r.count "block_count",
        vocab = rows_of(tensors, "token_embd.weight") or error(path .. ": tensor token_embd.weight: is missing", 0),
        positions = rows_of(tensors, "position_embd.weight"),
        token_types = rows_of(tensors, "token_types.weight"),
        attention = { context = r.count "context_length", eliminate = options.eliminate },
        ffn = { kind = kind.ffn, f = r.count "feed_forward_length", activation = kind.activation },
        checkpoint = tensors["blk.0.attn_qkv.weight"] and kind.packed or kind.checkpoint,
        parallel = kind.shared,
        skip = true,
    }
    local width = r.count("attention.key_length", math.max(1, m.d // m.heads))
    if r.count("attention.value_length", width) ~= width then
        r.refuse("attention.value_length", "must be " .. width .. ", as attention.key_length is")
    end
    if width * m.heads ~= m.d then m.head_dim = width end
    local kv_heads = r.count("attention.head_count_kv", m.heads)
    if kv_heads ~= m.heads then m.kv_heads = kv_heads end
    local eps = kind.norm == "rmsnorm" and "attention.layer_norm_rms_epsilon" or "attention.layer_norm_epsilon"
    m.norm = { kind = kind.norm, eps = r.number(eps), place = kind.encoder and "post" or kind.place }
    m.norm.shared = kind.shared
    if kind.encoder then m.attention.causal = r.get("attention.causal", "boolean", true) end
    if kind.pairs then m.attention.rope = rope_of(r, m, kind) end
    if kind.pairs then add_factors(path, m, tensors) end
    add_attention(r, m, kind)
    if kind.qk_norm then m.attention.qk_norm = { eps = m.norm.eps } end
    r.skip("vocab_size", "tensor_data_layout")
    if options.skipless then
        r.skip "pooling_type"
        m.norm, m.skip = nil, nil
    else
        add_ends(m, r, kind, tensors)
    end
    r.done()
    return m, architecture
end

-- A line on the tensors that the file has in blocks, or nil.
local function note_on(path, tensors)
    local counts, names, list = {}, {}, {}
    for _, tensor in pairs(tensors) do
        local name = tensor.blocks
        if name and not counts[name] then names[#names + 1] = name end
        if name then counts[name] = (counts[name] or 0) + 1 end
    end
    table.sort(names)
    for i, name in ipairs(names) do
        list[i] = string.format("%s (%d)", name, counts[name])
    end
    local line = list[1] and path .. ": tensors become float32 when they are read: " .. table.concat(list, ", ")
    for _, type in ipairs(dtype.list) do
        if counts[type.gguf] then line = line .. "; " .. type.gguf .. " stays as it is with --type " .. type.name end
    end
    return line
end

-- The table of a model file for the GGUF file `path`, what it is made of, and a line on its weights or nil. options:
-- eliminate; skipless: the blocks alone, without skip connections and norms. Raises one line.
function gguf.model(path, options)
    local metadata, message = weights.metadata(path)
    if not metadata then error(message, 0) end
    local tensors, why = weights.tensors(path)
    if not tensors then error(why, 0) end
    local m, architecture = model_of(path, metadata, tensors, options)
    return m, string.format("From the GGUF file of a %s.", architecture), note_on(path, tensors)
end

return gguf
