-- Turns the config.json of a checkpoint into the table of a model file: its blocks, or the whole model.
local config_keys = require "gen.import.config_keys"
local fields = require "gen.import.fields"
local json = require "json"
local lua_text = require "gen.schema.lua_text"
local pooling = require "gen.import.pooling"

local config_json = {}

-- One row a model_type: the family of tensor names, what it reads, and what differs. window: of attention, where the
-- type has one: always, or only if use_sliding_window says so; default: of sliding_window, nil: none; first: of
-- max_window_layers, the number of layers without one; turn: every so many-th layer has none; mixed: layer_types
-- decides. qk_norm: heads of q and k are normed; place: of norms; scaled: rows of the embedding are multiplied by
-- sqrt(d); head_bias: the head has one. Defaults: eps, head_dim, tied, activation; caps, of scores and of logits;
-- query, of which 1 / sqrt is the factor of q k.
local types = {
    llama = { reads = config_keys.llama, checkpoint = "llama", norm = "rmsnorm", ffn = "glu" },
    mistral = {
        reads = config_keys.llama .. "sliding_window",
        checkpoint = "llama",
        norm = "rmsnorm",
        ffn = "glu",
        window = { always = true, default = 4096 },
    },
    qwen2 = {
        reads = config_keys.llama .. "max_window_layers sliding_window use_sliding_window",
        checkpoint = "llama",
        norm = "rmsnorm",
        ffn = "glu",
        window = { default = 4096, first = 28, mixed = true },
    },
    qwen3 = {
        reads = config_keys.llama .. "max_window_layers sliding_window use_sliding_window",
        checkpoint = "llama",
        norm = "rmsnorm",
        ffn = "glu",
        window = { default = 4096, first = 28, mixed = true },
        qk_norm = true,
        head_dim = 128,
    },
    gemma = {
        reads = config_keys.llama .. "hidden_activation", -- beside hidden_act, which says nothing
        checkpoint = "gemma",
        norm = "rmsnorm",
        ffn = "glu",
        activation = "gelu_pytorch_tanh",
        head_dim = 256,
        tied = true,
        scaled = true,
        called = { hidden_act = "hidden_activation" },
    },
    gemma2 = {
        reads = config_keys.llama .. "attn_logit_softcapping final_logit_softcapping hidden_activation \z
            query_pre_attn_scalar sliding_window",
        checkpoint = "gemma",
        norm = "rmsnorm",
        ffn = "glu",
        activation = "gelu_pytorch_tanh",
        window = { always = true, default = 4096, turn = 2, mixed = true },
        head_dim = 256,
        tied = true,
        scaled = true,
        called = { hidden_act = "hidden_activation" },
        caps = { 50, 30 },
        query = 256,
        place = "both",
    },
    gpt_neox = {
        reads = config_keys.turned .. "layer_norm_eps rotary_emb_base rotary_pct use_parallel_residual",
        checkpoint = "gpt_neox",
        norm = "layernorm",
        ffn = "mlp",
    },
    phi = {
        reads = config_keys.turned .. "layer_norm_eps num_key_value_heads partial_rotary_factor rope_theta",
        checkpoint = "phi",
        norm = "layernorm",
        ffn = "mlp",
        head_bias = true,
    },
    phi3 = {
        reads = config_keys.llama .. "sliding_window",
        checkpoint = "phi3",
        norm = "rmsnorm",
        ffn = "glu",
        window = { always = true },
        eps = 1e-5,
    },
    roberta = { reads = config_keys.bert, checkpoint = "roberta", norm = "layernorm", ffn = "mlp", encoder = true },
    bert = { reads = config_keys.bert, checkpoint = "bert", norm = "layernorm", ffn = "mlp", encoder = true },
    gpt2 = {
        reads = "activation_function layer_norm_epsilon n_embd n_head n_inner n_layer n_positions scale_attn_weights \z
            tie_word_embeddings vocab_size",
        checkpoint = "gpt2",
        norm = "layernorm",
        ffn = "mlp",
        called = {
            hidden_size = "n_embd",
            num_attention_heads = "n_head",
            num_hidden_layers = "n_layer",
            max_position_embeddings = "n_positions",
            intermediate_size = "n_inner",
            hidden_act = "activation_function",
        },
    },
}
types["xlm-roberta"] = types.roberta

local activations = {
    gelu = "gelu",
    gelu_new = "gelu_tanh",
    gelu_fast = "gelu_tanh",
    gelu_pytorch_tanh = "gelu_tanh",
    silu = "silu",
    swish = "silu",
    relu = "relu",
}

-- What an object of rotary positions may have, and more where a kind scales them.
local rope_fields = {
    rope_type = true,
    type = true,
    rope_theta = true,
    partial_rotary_factor = true,
    original_max_position_embeddings = true, -- says nothing without a scale
}
local scaling_fields = {
    default = {},
    linear = { factor = true },
    llama3 = { factor = true, low_freq_factor = true, high_freq_factor = true },
    yarn = {
        factor = true,
        attention_factor = true,
        beta_fast = true,
        beta_slow = true,
        truncate = true,
        mscale = true,
        mscale_all_dim = true,
    },
}

-- A line on what the weights of the decoded file `config` become, or nil.
function config_json.note(path, config)
    return config_keys.says_blocks(config.quantization_config)
        and path .. ": weights in FP8 become float32 when they are read: times the scales of blocks of 128 x 128"
end

-- Reads fields of the decoded file `config`; raises one line for a wrong one.
local function reader(path, config)
    local r = { config = config }
    function r.refuse(key, value, rule) fields.refuse(path, key, value, rule) end
    function r.typed(source, prefix, key, kind, otherwise)
        return fields.typed(path, source, prefix, key, kind, otherwise)
    end
    for _, kind in ipairs { "integer", "number", "boolean", "string", "list", "table" } do
        r[kind] = function(key, otherwise) return r.typed(config, "", key, kind, otherwise) end
    end
    -- A number of at least 1, and at most what `of`, a key of model files, takes.
    function r.count(key, of, otherwise)
        local value, most = r.integer(key, otherwise), fields.most(of)
        if value < 1 then r.refuse(key, value, "must be at least 1") end
        if value > most then r.refuse(key, value, "must be at most " .. most) end
        return value
    end
    return r
end

-- The list layer_types of the model `m`, a word each layer; empty: the file has none.
local function layer_types(r, m)
    local kinds = r.list("layer_types", {})
    for _, kind in ipairs(kinds) do
        if type(kind) ~= "string" then r.refuse("layer_types", nil, "must be a list of names") end
        if kind ~= "full_attention" and kind ~= "sliding_attention" then
            r.refuse("layer_types", kind, "must be full_attention or sliding_attention")
        end
    end
    if kinds[1] and #kinds ~= m.layers then
        r.refuse("layer_types", nil, string.format("must have %d entries, a layer each, not %d", m.layers, #kinds))
    end
    return kinds
end

-- The width of the window of a type with the rule `rule`, or nil. A file that leaves its fields out means the defaults;
-- null as sliding_window: none; none is wider than the context.
local function width_of_window(r, rule, context)
    local window = r.config.sliding_window
    if not rule or window == json.null then return nil end
    if not (rule.always or r.boolean("use_sliding_window", false)) then return nil end
    if window == nil and not rule.default then return nil end
    return math.min(r.count("sliding_window", "attention.window", rule.default), context)
end

-- The window of attention of the model `m` so far, or nil, and the numbers of the layers without it, if there are some.
local function window_of(r, kind, m)
    local rule, full, kinds = kind.window or {}, {}, layer_types(r, m)
    local window = width_of_window(r, kind.window, m.attention.context)
    local first = rule.first and r.integer("max_window_layers", rule.first) or 0
    for layer = 0, m.layers - 1 do
        local all = not window or layer < first or rule.turn ~= nil and (layer + 1) % rule.turn == 0
        local word = kinds[layer + 1] or all and "full_attention" or "sliding_attention"
        if window and rule.mixed then
            all = word == "full_attention"
        elseif all ~= (word == "full_attention") then
            local is = all and "full_attention" or "sliding_attention"
            r.refuse("layer_types", word, string.format("layer %d of this %s is of %s", layer, r.config.model_type, is))
        end
        if all then full[#full + 1] = layer end
    end
    if #full == m.layers then return nil end
    return window, full[1] and full
end

-- Reads the object `place` of rotary positions, and what kind they are; a field that it may not have is refused.
local function rope_object(r, place)
    local object = r.table(place, {})
    local function inner(key, kind, otherwise) return r.typed(object, place .. ".", key, kind, otherwise) end
    local kind = inner("rope_type", "string", inner("type", "string", "default"))
    if kind == "dynamic" or kind == "longrope" or kind == "su" then
        r.refuse(place, kind, "frequencies that change with the length of the text are not known here")
    elseif not scaling_fields[kind] then
        r.refuse(place, kind, "must be one of " .. table.concat(lua_text.keys(scaling_fields), ", "))
    end
    for _, key in ipairs(lua_text.keys(object)) do
        local value = object[key]
        local neutral = value == json.null or key == "factor" and value == 1
        if not (rope_fields[key] or scaling_fields[kind][key] or neutral) then
            r.refuse(place .. "." .. key, value, "is not known of rotary positions of the kind " .. kind)
        end
    end
    return inner, kind
end

-- The scaling of model `m` of a kind whose object has the fields inner(key, type, otherwise).
local scaling = {}

function scaling.linear(inner) return { kind = "linear", factor = inner("factor", "number") } end

function scaling.llama3(inner)
    return {
        kind = "llama3",
        factor = inner("factor", "number"),
        original = inner("original_max_position_embeddings", "integer"),
        slow = inner("low_freq_factor", "number"),
        fast = inner("high_freq_factor", "number"),
    }
end

function scaling.yarn(inner, m)
    local s = {
        kind = "yarn",
        factor = inner("factor", "number"),
        original = inner("original_max_position_embeddings", "integer", m.attention.context),
        slow = inner("beta_slow", "number", 1),
        fast = inner("beta_fast", "number", 32),
        truncate = inner("truncate", "boolean", true),
        attention_factor = inner("attention_factor", "number", false) or nil,
    }
    local own, all = inner("mscale", "number", 0), inner("mscale_all_dim", "number", 0)
    if not s.attention_factor and own ~= 0 and all ~= 0 then
        local grown = 0.1 * math.log(math.max(s.factor, 1))
        s.attention_factor = (grown * own + 1) / (grown * all + 1)
    end
    return s
end

-- Of the rotary positions of model `m`; nil: they are not scaled.
local function rope_scaling(r, m)
    local found
    for _, place in ipairs { "rope_parameters", "rope_scaling" } do
        local inner, kind = rope_object(r, place)
        if kind ~= "default" then
            if found then r.refuse(place, kind, "must be absent beside rope_parameters = " .. found.kind) end
            found = scaling[kind](inner, m)
        end
    end
    return found
end

-- A number of the rope: `new` in rope_parameters or in rope_scaling, or `old` outside.
local function rope(r, new, old, otherwise)
    local outer = r.number(old, false)
    local here = rope_object(r, "rope_parameters")(new, "number", outer)
    local scaling = rope_object(r, "rope_scaling")(new, "number", here)
    if here and scaling ~= here then -- versions of transformers differ in which they take
        r.refuse("rope_scaling." .. new, scaling, "must be " .. here .. ", as outside")
    end
    return scaling or otherwise
end

-- The share of a head of model `m` that is rotated: of head * factor values the whole ones, as transformers does.
local function rope_share(r, m, old, otherwise)
    local factor, width = rope(r, "partial_rotary_factor", old, otherwise), m.head_dim or m.d // m.heads
    local rotated = math.floor(factor * width)
    if rotated == factor * width then return factor end
    if rotated % 2 ~= 0 then
        local rule = "rotates %d of the %d values of a head: must be an even number"
        r.refuse(old, factor, rule:format(rotated, width))
    end
    return rotated / width
end

local function common(r, kind)
    local function called(key) return kind.called and kind.called[key] or key end
    local d = r.count(called "hidden_size", "d")
    local m = {
        name = r.string("_name_or_path", ""):match "[^/]+$" or r.string "model_type",
        d = d,
        heads = r.count(called "num_attention_heads", "heads"),
        layers = r.count(called "num_hidden_layers", "layers"),
        vocab = r.count("vocab_size", "vocab"),
        attention = { context = r.count(called "max_position_embeddings", "attention.context") },
        ffn = { kind = kind.ffn, f = r.count(called "intermediate_size", "ffn.f", kind.called and 4 * d or nil) },
        checkpoint = kind.checkpoint,
    }
    local key = called "hidden_act"
    local activation = r.string(key, kind.activation)
    m.ffn.activation = activations[activation]
    if not m.ffn.activation then
        r.refuse(key, activation, "must be one of " .. table.concat(lua_text.keys(activations), ", "))
    end
    local width = r.integer("head_dim", kind.head_dim or 0)
    if width ~= 0 and width * m.heads ~= m.d then m.head_dim = width end
    return m
end

-- One function a family: what its own fields say.
local add = {}

function add.llama(m, r, kind)
    m.kv_heads = r.count("num_key_value_heads", "kv_heads", m.heads)
    m.tied = r.boolean("tie_word_embeddings", kind.tied or false)
    m.attention.window, m.attention.full_layers = window_of(r, kind, m)
    m.attention.rope = {
        theta = rope(r, "rope_theta", "rope_theta", 10000),
        share = rope_share(r, m, "partial_rotary_factor", 1),
        scaling = rope_scaling(r, m),
    }
    m.norm = { kind = "rmsnorm", eps = r.number("rms_norm_eps", kind.eps or 1e-6), place = kind.place }
    m.attention.qk_norm = kind.qk_norm and { eps = m.norm.eps }
    local width = m.head_dim or m.d // m.heads
    local query = kind.query and r.number("query_pre_attn_scalar", kind.query) or width
    if query ~= width then
        if query <= 0 then r.refuse("query_pre_attn_scalar", query, "must be above 0") end
        m.attention.scale = query ^ -0.5
    end
end
add.gemma, add.phi3 = add.llama, add.llama

function add.gpt_neox(m, r)
    m.tied = r.boolean("tie_word_embeddings", false)
    m.parallel = r.boolean("use_parallel_residual", true)
    m.attention.rope = {
        theta = rope(r, "rope_theta", "rotary_emb_base", 10000),
        share = rope_share(r, m, "rotary_pct", 0.25),
        scaling = rope_scaling(r, m),
    }
    m.norm = { kind = "layernorm", eps = r.number("layer_norm_eps", 1e-5) }
end

function add.phi(m, r)
    m.kv_heads = r.count("num_key_value_heads", "kv_heads", m.heads)
    m.tied, m.parallel = r.boolean("tie_word_embeddings", false), true
    m.attention.rope = {
        theta = rope(r, "rope_theta", "rope_theta", 10000),
        share = rope_share(r, m, "partial_rotary_factor", 0.5),
        scaling = rope_scaling(r, m),
    }
    m.norm = { kind = "layernorm", eps = r.number("layer_norm_eps", 1e-5), shared = true }
end

function add.bert(m, r)
    local kind = r.string("position_embedding_type", "absolute")
    if kind ~= "absolute" then r.refuse("position_embedding_type", kind, 'must be "absolute"') end
    m.tied = r.boolean("tie_word_embeddings", true)
    m.positions, m.token_types = m.attention.context, r.integer("type_vocab_size", m.checkpoint == "bert" and 2 or 1)
    m.attention.causal = r.boolean("is_decoder", false)
    m.norm = { kind = "layernorm", eps = r.number("layer_norm_eps", 1e-12), place = "post" }
end

function add.roberta(m, r)
    add.bert(m, r)
    -- Positions count from behind the padding's.
    local padding = r.integer("pad_token_id", 1)
    if padding < 0 or padding > m.positions - 2 then
        r.refuse("pad_token_id", padding, "must leave positions of max_position_embeddings")
    end
    m.attention.context = m.positions - padding - 1
end

function add.gpt2(m, r)
    m.tied = r.boolean("tie_word_embeddings", true)
    m.positions = m.attention.context
    if not r.boolean("scale_attn_weights", true) then m.attention.scale = 1 end
    m.norm = { kind = "layernorm", eps = r.number("layer_norm_epsilon", 1e-5) }
end

-- What the last part of an architecture's name makes of the last block's output; one function each for encoders and
-- decoders.
local outputs = { encoder = {}, decoder = {} }

function outputs.encoder.MaskedLM(m, r)
    local norm = { kind = "layernorm", eps = m.norm.eps }
    local activation = m.checkpoint == "roberta" and "gelu" or m.ffn.activation
    return { dense = { width = m.d, activation = activation, norm = norm }, head = { bias = true } }, r
end
outputs.encoder.PreTraining = outputs.encoder.MaskedLM

-- How many classes there are.
local function classes_of(r, config)
    local count, names = r.integer("num_labels", 0), config.id2label
    if count > 0 then return count end
    if type(names) ~= "table" then return 2 end
    for _ in pairs(names) do
        count = count + 1
    end
    return count
end

function outputs.encoder.SequenceClassification(m, r, config)
    return {
        pool = "first",
        dense = { width = m.d, activation = "tanh" },
        classes = classes_of(r, config),
    }
end

function outputs.encoder.TokenClassification(_, r, config) return { classes = classes_of(r, config) } end

function outputs.encoder.Model(m, _, _, folder)
    local output, most = pooling.of(folder)
    if most then m.attention.context = math.min(most, m.attention.context) end
    return output or {}
end

-- The soft cap in the field `key`, or that number `i` of the type's; nil: none, or the type has no such field.
local function cap_of(r, key, i)
    local caps = types[r.config.model_type].caps
    local cap = caps and r.number(key, r.config[key] ~= json.null and caps[i] or 0) or 0
    return cap ~= 0 and cap or nil
end

function outputs.decoder.CausalLM(m, r)
    local cap = cap_of(r, "final_logit_softcapping", 2)
    local bias = types[r.config.model_type].head_bias
    return { norm = { kind = m.norm.kind, eps = m.norm.eps }, head = { bias = bias, soft_cap = cap } }
end
outputs.decoder.LMHeadModel = outputs.decoder.CausalLM

function outputs.decoder.Model(m) return { norm = { kind = m.norm.kind, eps = m.norm.eps } } end

-- Adds what stands before and behind the blocks. `folder`: of the checkpoint.
local function add_ends(m, r, config, kind, folder)
    local known = outputs[kind.encoder and "encoder" or "decoder"]
    local architecture = r.list("architectures", {})[1]
    if architecture ~= nil and type(architecture) ~= "string" then
        r.refuse("architectures", nil, "must be a list of names")
    end
    local word = not architecture and (kind.encoder and "Model" or "CausalLM")
        or architecture:match "For(%a+)$"
        or architecture:match "(LMHeadModel)$"
        or architecture:match "(Model)$"
    if not known[word] then
        r.refuse("architectures", architecture, "must end in one of " .. table.concat(lua_text.keys(known), ", "))
    end
    m.embedding = { scale = kind.scaled and m.d ^ 0.5 or nil }
    if kind.encoder then
        m.embedding.norm = { kind = "layernorm", eps = m.norm.eps }
        if m.positions > m.attention.context then m.embedding.first_position = m.positions - m.attention.context end
    end
    m.output = known[word](m, r, config, folder)
    m.tied = m.tied and m.output.head ~= nil
end

-- Whether the decoded JSON `object` is such a configuration.
function config_json.claims(object) return object.model_type ~= nil end

-- The table of a model file for the decoded config.json `config` at `path`, with the name as it stands there, which may
-- be none for symbols. options: eliminate; skipless: without skip connections and norms; folder: of the checkpoint, for
-- the whole model instead of its blocks. Raises one line.
function config_json.model(path, config, options)
    local r = reader(path, config)
    local kind = types[r.string "model_type"]
    if not kind then
        r.refuse("model_type", config.model_type, "must be one of " .. table.concat(lua_text.keys(types), ", "))
    end
    local m = common(r, kind)
    local shape = { d = m.d, heads = m.heads, head_dim = m.head_dim, encoder = kind.encoder }
    config_keys.check(path, config, kind.reads, shape)
    m.attention.eliminate = options.eliminate
    m.attention.soft_cap = cap_of(r, "attn_logit_softcapping", 1)
    add[kind.checkpoint](m, r, kind)
    m.skip = true
    if options.folder then add_ends(m, r, config, kind, options.folder) end
    if options.skipless then
        m.norm, m.skip = nil, nil
    end
    return m
end

return config_json
