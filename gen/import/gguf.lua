-- Turns the metadata and tensors of a GGUF file into the table of a model file.
local dtype = require "gen.plan.dtype"
local fields = require "gen.import.fields"
local lua_text = require "gen.schema.lua_text"
local one_of = require "gen.schema.one_of"
local rope = require "gen.families.model.blocks.rope"
local weights = require "weights"

local gguf = {}

-- What files say under their architecture's name: of every one, and of those with rotary positions.
local common = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
}
local rotary = {
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear", -- of 2023, now rope.scaling.factor
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
}
local eps_of = { rmsnorm = "attention.layer_norm_rms_epsilon", layernorm = "attention.layer_norm_epsilon" }

-- The values with which a key that an architecture does not read changes nothing, where these are others than 0 and
-- false; "any": whatever it has.
local neutral = {
    ["attention.causal"] = { true },
    embedding_scale = { 0, 1 },
    expert_weights_scale = { 0, 1 },
    logit_scale = { 0, 1 },
    residual_scale = { 0, 1 },
    ["rope.scale_linear"] = { 0, 1 },
    ["rope.scaling.attn_factor"] = { 1 },
    ["rope.scaling.factor"] = { 0, 1 },
    ["rope.scaling.finetuned"] = "any",
    ["rope.scaling.type"] = { "none" },
    ["rope.scaling.yarn_attn_factor"] = { 1 },
    tensor_data_layout = "any",
}

-- What the rows of Gemma share.
local function gemma(more)
    more.checkpoint, more.norm, more.ffn, more.activation, more.pairs = "gguf", "rmsnorm", "glu", "gelu_tanh", "half"
    more.scaled = true
    return more
end

-- One row an architecture: the kind of its tensor names, and what differs. own: what it reads beside `common`, the
-- norm's eps and, with pairs, `rotary`: defaults by key. pairs: which values of a head rope turns together; files of a
-- llama have rows of q and k in another order than transformers. Files do not name the activation. place, scaled,
-- head_bias, turn: as in gen/import/config_json.lua; packed: the kind where q, k and v are one tensor; shared: blocks
-- are parallel with one norm; positions: they are learned; wide: the number of layers where heads of the only size that
-- has so many divide q k by sqrt(d / heads).
local architectures = {
    llama = { checkpoint = "gguf", norm = "rmsnorm", ffn = "glu", activation = "silu", pairs = "interleaved" },
    qwen2 = { checkpoint = "gguf", norm = "rmsnorm", ffn = "glu", activation = "silu", pairs = "half" },
    qwen3 = { checkpoint = "gguf", norm = "rmsnorm", ffn = "glu", activation = "silu", pairs = "half", qk_norm = true },
    gemma = gemma {},
    gemma2 = gemma {
        own = { ["attention.sliding_window"] = 4096, attn_logit_softcapping = 50.0, final_logit_softcapping = 30.0 },
        place = "both",
        turn = 2,
        wide = 46,
    },
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
        own = { ["attention.sliding_window"] = 0 },
        checkpoint = "gguf_phi3",
        norm = "rmsnorm",
        ffn = "glu",
        activation = "silu",
        pairs = "half",
    },
    gpt2 = { checkpoint = "gguf_gpt2", norm = "layernorm", ffn = "mlp", activation = "gelu_tanh", positions = true },
    bert = {
        own = { ["attention.causal"] = true, pooling_type = 0 },
        checkpoint = "gguf_bert",
        norm = "layernorm",
        ffn = "mlp",
        activation = "gelu",
        encoder = true,
        positions = true,
    },
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

-- Whether a key that the architecture does not read changes nothing.
local function is_neutral(key, value)
    local values = neutral[key] or { 0, false }
    return values == "any" or one_of.contains(values, value)
end

-- Reads the keys of `metadata` that begin with the name of the architecture of row `kind`; raises one line for a wrong
-- one, or one that the architecture does not read and that may change something.
local function reader(path, metadata, architecture, kind)
    local r, own, reads, prefix = {}, {}, { [eps_of[kind.norm]] = true }, architecture .. "."
    for key, value in pairs(metadata) do
        if key:sub(1, #prefix) == prefix then own[key:sub(#prefix + 1)] = value end
    end
    for _, list in ipairs { common, kind.pairs and rotary or {} } do
        for _, key in ipairs(list) do
            reads[key] = true
        end
    end
    for key in pairs(kind.own or {}) do
        reads[key] = true
    end
    function r.get(key, type_of, otherwise)
        assert(reads[key], key)
        return fields.typed(path, own, prefix, key, type_of, otherwise)
    end
    function r.refuse(key, rule) fields.refuse(path, prefix .. key, own[key], rule) end
    -- A number of at least 1, and at most what `of`, a key of model files, takes.
    function r.count(key, of, otherwise)
        local value, most = r.get(key, "integer", otherwise), fields.most(of)
        if value < 1 then r.refuse(key, "must be at least 1") end
        if value > most then r.refuse(key, "must be at most " .. most) end
        return value
    end
    -- The same of a number that may be an array of equal ones, one for each of `layers`.
    function r.count_of_layers(key, of, layers, otherwise)
        local list = own[key]
        if type(list) == "table" then
            local same = #list == layers
            for _, value in ipairs(list) do
                same = same and value == list[1]
            end
            if not same then r.refuse(key, string.format("must be one number, or equal ones of %d layers", layers)) end
            own[key] = list[1]
        end
        return r.count(key, of, otherwise)
    end
    function r.number(key, otherwise)
        local value = r.get(key, "number", otherwise)
        if value - value ~= 0 then r.refuse(key, "must be finite") end
        return decimal(value)
    end
    for _, key in ipairs(lua_text.keys(own)) do
        if not reads[key] and not is_neutral(key, own[key]) then r.refuse(key, "is not known here") end
    end
    return r
end

-- The rows of the tensor `name` of the file, or nil.
local function rows_of(tensors, name) return tensors[name] and tensors[name].shape[1] end

-- Kinds of rope.scaling.type: what a model file says of them.
local scalings = { none = function() end }

function scalings.linear(_, factor)
    return factor ~= 0 and factor ~= 1 and { kind = "linear", factor = factor } or nil
end

function scalings.yarn(r, factor, own)
    if factor == 0 then r.refuse("rope.scaling.factor", "must be given and not 0, for yarn") end
    local context, original = r.get("context_length", "integer"), "rope.scaling.original_context_length"
    return {
        kind = "yarn",
        factor = factor,
        original = r.count(original, "attention.context", context),
        slow = r.number("rope.scaling.yarn_beta_slow", 1),
        fast = r.number("rope.scaling.yarn_beta_fast", 32),
        attention_factor = own ~= 1 and own * (0.1 * math.log(factor) + 1) or nil,
    }
end

-- The scaling of rotary positions, or nil. As llama.cpp reads it: linear where the file has no type, by a factor whose
-- 0 means 1.
local function scaling_of(r)
    local factor = r.number("rope.scaling.factor", r.number("rope.scale_linear", 0.0))
    local own, word = r.number("rope.scaling.attn_factor", 1.0), r.get("rope.scaling.type", "string", "linear")
    local scaling = scalings[word]
    if not scaling then r.refuse("rope.scaling.type", "must be none, linear or yarn") end
    if own ~= 1 and word ~= "yarn" then
        r.refuse("rope.scaling.attn_factor", 'must be 1 where rope.scaling.type is not "yarn"')
    end
    return scaling(r, factor, own)
end

-- The rotary positions of model `m`.
local function rope_of(r, m, kind)
    local width = m.head_dim or m.d // m.heads
    local rotated = r.count("rope.dimension_count", "head_dim", width)
    if rotated > width or rotated % 2 ~= 0 then
        r.refuse("rope.dimension_count", "must be even and at most " .. width)
    end
    local theta = r.number("rope.freq_base", 10000.0)
    return { theta = theta, share = rotated / width, pairs = kind.pairs, scaling = scaling_of(r) }
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

-- The soft cap in the field `key`; nil: none, or the architecture has no such field.
local function cap_of(r, kind, key)
    local default = kind.own and kind.own[key]
    local cap = default and r.number(key, default) or 0
    return cap ~= 0 and cap or nil
end

-- Adds to the attention of `m` its window, with the layers that have none, its soft cap and its scale.
local function add_attention(r, m, kind)
    local a, key = m.attention, "attention.sliding_window"
    a.soft_cap = cap_of(r, kind, "attn_logit_softcapping")
    if m.layers == kind.wide then a.scale = (m.d / m.heads) ^ -0.5 end
    local default = kind.own and kind.own[key]
    if not default then return end
    local window, least = r.get(key, "integer", default), math.min(default, 1)
    if window < least then r.refuse(key, "must be at least " .. least) end
    a.window = window > 0 and math.min(window, a.context) or nil
    local full = {}
    for layer = kind.turn and kind.turn - 1 or m.layers, m.layers - 1, kind.turn or 1 do
        full[#full + 1] = layer
    end
    a.full_layers = full[1] and full
end

-- Adds to `m` what stands before and behind the blocks.
local function add_ends(m, r, kind, tensors)
    m.embedding = { scale = kind.scaled and m.d ^ 0.5 or nil }
    if kind.encoder then
        m.embedding.norm = { kind = m.norm.kind, eps = m.norm.eps }
        local pooling = r.get("pooling_type", "integer", kind.own.pooling_type)
        m.output = pools[pooling + 1] or r.refuse("pooling_type", "must be from 0 to " .. #pools - 1)
    else
        local cap = cap_of(r, kind, "final_logit_softcapping")
        m.output = { norm = { kind = m.norm.kind, eps = m.norm.eps }, head = { bias = kind.head_bias, soft_cap = cap } }
        m.tied = not tensors["output.weight"]
    end
end

-- Adds to `m` the rows of the embeddings.
local function add_rows(path, m, r, kind, tensors)
    local function needed(name)
        return rows_of(tensors, name) or error(path .. ": tensor " .. name .. ": is missing", 0)
    end
    m.vocab = needed "token_embd.weight"
    local said = r.get("vocab_size", "integer", m.vocab)
    if said ~= m.vocab then r.refuse("vocab_size", "must be the rows of token_embd.weight, " .. m.vocab) end
    if kind.positions then m.positions = needed "position_embd.weight" end
    if kind.encoder then m.token_types = rows_of(tensors, "token_types.weight") end
end

-- The row of the architecture of the file, and its name.
local function kind_of(path, metadata)
    local architecture = fields.typed(path, metadata, "", "general.architecture", "string")
    local kind = architectures[architecture]
    if not kind then
        local known = table.concat(lua_text.keys(architectures), ", ")
        fields.refuse(path, "general.architecture", architecture, "must be one of " .. known)
    end
    return kind, architecture
end

-- The table of a model file, with the name as it stands there, and the architecture.
local function model_of(path, metadata, tensors, options)
    local kind, architecture = kind_of(path, metadata)
    local r = reader(path, metadata, architecture, kind)
    local layers = r.count("block_count", "layers")
    local f = r.count_of_layers("feed_forward_length", "ffn.f", layers)
    local m = {
        name = fields.typed(path, metadata, "", "general.name", "string", architecture),
        d = r.count("embedding_length", "d"),
        heads = r.count_of_layers("attention.head_count", "heads", layers),
        layers = layers,
        attention = { context = r.count("context_length", "attention.context"), eliminate = options.eliminate },
        ffn = { kind = kind.ffn, f = f, activation = kind.activation },
        checkpoint = tensors["blk.0.attn_qkv.weight"] and kind.packed or kind.checkpoint,
        parallel = kind.shared,
        skip = true,
    }
    add_rows(path, m, r, kind, tensors)
    local width = r.count("attention.key_length", "head_dim", math.max(1, m.d // m.heads))
    if r.count("attention.value_length", "head_dim", width) ~= width then
        r.refuse("attention.value_length", "must be " .. width .. ", as attention.key_length is")
    end
    if width * m.heads ~= m.d then m.head_dim = width end
    local kv_heads = r.count_of_layers("attention.head_count_kv", "kv_heads", layers, m.heads)
    if kv_heads ~= m.heads then m.kv_heads = kv_heads end
    m.norm = { kind = kind.norm, eps = r.number(eps_of[kind.norm]), place = kind.encoder and "post" or kind.place }
    m.norm.shared = kind.shared
    if kind.encoder then m.attention.causal = r.get("attention.causal", "boolean", kind.own["attention.causal"]) end
    if kind.pairs then
        m.attention.rope = rope_of(r, m, kind)
        add_factors(path, m, tensors)
    end
    add_attention(r, m, kind)
    if kind.qk_norm then m.attention.qk_norm = { eps = m.norm.eps } end
    if options.skipless then
        m.norm, m.skip = nil, nil
    else
        add_ends(m, r, kind, tensors)
    end
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
