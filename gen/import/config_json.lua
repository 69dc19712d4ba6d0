-- Turns the config.json of a checkpoint into the text of a model file.
local fuse = require "gen.families.transformer.fuse"
local host = require "host"
local json = require "json"
local model_file = require "gen.families.model_file"
local names = require "gen.model.names"
local transformer_model = require "gen.families.transformer.model"

local import = {}

local largest_config = 1 << 24 -- bytes

-- One row a model_type: the family of tensor names, and what differs.
local types = {
    llama = { checkpoint = "llama", norm = "rmsnorm", ffn = "glu" },
    mistral = { checkpoint = "llama", norm = "rmsnorm", ffn = "glu" },
    qwen2 = { checkpoint = "llama", norm = "rmsnorm", ffn = "glu" },
    gpt_neox = { checkpoint = "gpt_neox", norm = "layernorm", ffn = "mlp" },
    roberta = { checkpoint = "roberta", norm = "layernorm", ffn = "mlp", bidirectional = true },
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

-- Fields that make another model than a model file can say: { key, rule, the value that changes nothing, if there is
-- one beside null, false and 0 }.
local experts = "a mixture of experts is not known here"
local scaled = "a factor at this place is not known here"
local unknown_fields = {
    { "quantization_config", "quantised weights are not read; take the checkpoint that they were made from" },
    { "compression_config", "compressed weights are not read; take the checkpoint that they were made from" },
    { "num_local_experts", experts, 1 },
    { "num_experts", experts, 1 },
    { "n_routed_experts", experts, 1 },
    { "moe_intermediate_size", experts },
    { "attn_logit_softcapping", "scores with a soft cap are not known here" },
    { "final_logit_softcapping", "logits with a soft cap are not known here" },
    { "use_qk_norm", "norms of q and k are not known here" },
    { "qk_layernorm", "norms of q and k are not known here" },
    { "clip_qkv", "clipped q, k and v are not known here" },
    { "alibi", "biases of scores by distance are not known here" },
    { "embedding_multiplier", scaled, 1 },
    { "residual_multiplier", scaled, 1 },
    { "attention_multiplier", scaled, 1 },
    { "logits_scaling", scaled, 1 },
    { "add_cross_attention", "attention to another model is not known here" },
}

local function sorted(set)
    local list = {}
    for key in pairs(set) do
        list[#list + 1] = key
    end
    table.sort(list)
    return list
end

-- Reads fields of the decoded file; raises one line for a wrong one.
local function reader(path, config)
    local r = {}
    function r.refuse(key, value, rule)
        local shown = value ~= nil and " = " .. tostring(value):sub(1, 60) or ""
        error(string.format("%s: %s%s: %s", path, key, shown, rule), 0)
    end
    local function typed(source, prefix, key, kind, otherwise)
        local value = source[key]
        if value == nil or value == json.null then
            if otherwise == nil then r.refuse(prefix .. key, nil, "is missing") end
            return otherwise
        end
        local is = kind == "integer" and math.type(value) == "integer" or type(value) == kind
        if not is then
            r.refuse(
                prefix .. key,
                type(value) ~= "table" and value or nil,
                "must be " .. (kind == "integer" and "an " or "a ") .. kind
            )
        end
        return value
    end
    function r.integer(key, otherwise) return typed(config, "", key, "integer", otherwise) end
    function r.number(key, otherwise) return typed(config, "", key, "number", otherwise) end
    function r.boolean(key, otherwise) return typed(config, "", key, "boolean", otherwise) end
    function r.string(key, otherwise) return typed(config, "", key, "string", otherwise) end
    -- A number of the rope, at its new place `new` in rope_parameters or its old one.
    function r.rope(new, old, otherwise)
        local parameters = typed(config, "", "rope_parameters", "table", false)
        if parameters and parameters[new] ~= nil then return typed(parameters, "rope_parameters.", new, "number") end
        return typed(config, "", old, "number", otherwise)
    end
    -- Refuses frequencies that a model file cannot say.
    function r.plain_rope()
        for _, place in ipairs { "rope_scaling", "rope_parameters" } do
            local parameters = typed(config, "", place, "table", false)
            if parameters then
                local kind = parameters.rope_type or parameters.type
                if type(kind) == "string" and kind ~= "default" or kind == nil and parameters.factor ~= nil then
                    r.refuse(place, kind, "scaled rotary positions are not known here")
                end
            end
        end
    end
    function r.known_fields()
        for _, row in ipairs(unknown_fields) do
            local key, rule, neutral = table.unpack(row)
            local value = config[key]
            if value ~= nil and value ~= json.null and value ~= false and value ~= 0 and value ~= neutral then
                r.refuse(key, type(value) ~= "table" and value or nil, rule)
            end
        end
        -- Layers with a window beside layers without one.
        local kinds = typed(config, "", "layer_types", "table", {})
        for _, kind in ipairs(kinds) do
            if type(kind) ~= "string" then r.refuse("layer_types", nil, "must be a list of names") end
            if kind ~= kinds[1] then
                r.refuse("layer_types", nil, "must be the same for all layers, has " .. kinds[1] .. " and " .. kind)
            end
        end
    end
    return r
end

-- A name for emitted symbols out of any text.
local function name_from(text)
    local name = text:lower():gsub("[^%l%d]+", "_"):gsub("^[_%d]+", ""):gsub("_+$", ""):sub(1, 40):gsub("_+$", "")
    return names.valid(name) and name or "model"
end

local function common(r, kind, options)
    local m = {
        name = options.name or name_from(r.string("_name_or_path", ""):match "[^/]+$" or r.string "model_type"),
        d = r.integer "hidden_size",
        heads = r.integer "num_attention_heads",
        layers = r.integer "num_hidden_layers",
        vocab = r.integer "vocab_size",
        attention = { eliminate = options.eliminate, context = r.integer "max_position_embeddings" },
        ffn = { kind = kind.ffn, f = r.integer "intermediate_size" },
        checkpoint = kind.checkpoint,
    }
    local activation = r.string "hidden_act"
    m.ffn.activation = activations[activation]
    if not m.ffn.activation then
        r.refuse("hidden_act", activation, "must be one of " .. table.concat(sorted(activations), ", "))
    end
    local width = r.integer("head_dim", 0)
    if width ~= 0 and width * m.heads ~= m.d then m.head_dim = width end
    return m
end

-- One function a family: what its own fields say.
local add = {}

function add.llama(m, r)
    m.kv_heads = r.integer("num_key_value_heads", m.heads)
    m.tied = r.boolean("tie_word_embeddings", false)
    local window = r.boolean("use_sliding_window", true) and r.integer("sliding_window", 0) or 0
    if window > 0 then
        m.attention.window = math.min(window, m.attention.context)
        local first = r.integer("max_window_layers", 0)
        if first > 0 then
            r.refuse("max_window_layers", first, "must be 0: a window that some layers have is not known here")
        end
    end
    r.plain_rope()
    m.attention.rope = {
        theta = r.rope("rope_theta", "rope_theta", 10000),
        share = r.rope("partial_rotary_factor", "partial_rotary_factor", 1),
    }
    m.norm = { kind = "rmsnorm", eps = r.number("rms_norm_eps", 1e-6) }
end

function add.gpt_neox(m, r)
    m.tied = r.boolean("tie_word_embeddings", false)
    m.parallel = r.boolean("use_parallel_residual", true)
    r.plain_rope()
    m.attention.rope = {
        theta = r.rope("rope_theta", "rotary_emb_base", 10000),
        share = r.rope("partial_rotary_factor", "rotary_pct", 0.25),
    }
    m.norm = { kind = "layernorm", eps = r.number("layer_norm_eps", 1e-5) }
end

function add.roberta(m, r)
    local kind = r.string("position_embedding_type", "absolute")
    if kind ~= "absolute" then r.refuse("position_embedding_type", kind, 'must be "absolute"') end
    m.tied = r.boolean("tie_word_embeddings", true)
    m.positions, m.token_types = m.attention.context, r.integer("type_vocab_size", 1)
    -- Positions count from behind the padding's.
    m.attention.context = m.attention.context - r.integer("pad_token_id", 1) - 1
    m.attention.causal = r.boolean("is_decoder", false)
    m.norm = { kind = "layernorm", eps = r.number("layer_norm_eps", 1e-12), place = "post" }
end

-- The value as Lua source.
local function literal(value)
    if type(value) == "string" then return string.format("%q", value) end
    if math.type(value) == "integer" or type(value) == "boolean" then return tostring(value) end
    local short = string.format("%.15g", value)
    return tonumber(short) == value and short or string.format("%.17g", value)
end

-- The fields of a table in the order of `keys`, on one line; defaults only in inner tables.
local function fields(keys, t, inner)
    local list = {}
    for _, row in ipairs(keys) do
        local value = t[row.key]
        if type(value) == "table" then
            list[#list + 1] = row.key .. " = { " .. fields(row.rule.table, value, true) .. " }"
        elseif value ~= nil and (inner or value ~= row.default) then
            list[#list + 1] = row.key .. " = " .. literal(value)
        end
    end
    return table.concat(list, ", ")
end

-- The text of a model file for the config.json at `path`; options: name, eliminate, skipless. Raises one line.
function import.model(path, options)
    local text, message = host.read(path, largest_config)
    if not text then error(message, 0) end
    local config, why = json.decode(text)
    if config == nil then error(path .. ": " .. why, 0) end
    if type(config) ~= "table" then error(path .. ": must be an object", 0) end
    local r = reader(path, config)
    local kind = types[r.string "model_type"]
    if not kind then
        r.refuse("model_type", config.model_type, "must be one of " .. table.concat(sorted(types), ", "))
    end
    r.known_fields()
    local m = common(r, kind, options)
    add[kind.checkpoint](m, r)
    if options.skipless then
        m.norm = nil
    else
        m.skip = true
    end

    local without = options.skipless and ", without skip connections and norms" or ""
    local keys, lines =
        transformer_model.keys, {
            string.format("-- From the config.json of a %s%s.", config.model_type, without),
            "return {",
        }
    for _, row in ipairs(keys) do
        local line = fields({ row }, m)
        if line ~= "" then lines[#lines + 1] = "    " .. line .. "," end
    end
    lines[#lines + 1] = "}"
    local valid = model_file.validate(m, "", path)
    if options.skipless and options.eliminate ~= "none" then fuse.check(valid, options.eliminate, true) end
    return table.concat(lines, "\n") .. "\n"
end

return import
