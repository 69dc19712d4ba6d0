-- Which keys of a config.json never matter, and with which values those that a type does not read change nothing: all
-- else is refused by name.
local fields = require "gen.import.fields"
local json = require "json"
local lua_text = require "gen.schema.lua_text"
local one_of = require "gen.schema.one_of"

local config_keys = {}

-- The words of a text.
local function set(text)
    local words = {}
    for word in text:gmatch "%S+" do
        words[word] = true
    end
    return words
end

-- What no output of the model depends on, or what its tensors say.
local never = set [[
    _attn_implementation _attn_implementation_autoset _attn_implementation_internal _commit_hash
    _flash_attn_2_enabled _name_or_path _num_labels architectures attention_bias attn_implementation auto_map
    bad_words_ids begin_suppress_tokens bias cache_implementation chunk_size_feed_forward custom_pipelines
    decoder_start_token_id directionality diversity_penalty do_sample dtype early_stopping
    encoder_no_repeat_ngram_size exponential_decay_length_penalty export_model_type finetuning_task
    gradient_checkpointing id2label initializer_factor initializer_range is_llama_config label2id language
    length_penalty max_length max_seq_len max_seq_length max_sequence_length min_length mlp_bias model_max_length
    model_type n_ctx name no_repeat_ngram_size num_beam_groups num_beams num_labels num_return_sequences
    original_max_position_embeddings output_attentions output_hidden_states output_past output_scores
    predict_special_tokens prefix pretraining_tp problem_type qkv_bias remove_invalid_values reorder_and_upcast_attn
    repetition_penalty return_dict return_dict_in_generate sbert_ce_default_activation_function
    sentence_transformers seq_length suppress_tokens task_specific_params temperature tf_legacy_loss tokenizer_class
    top_k top_p torch_dtype torchscript transformers.js_config transformers_version typical_p unsloth_fixed
    unsloth_version use_bfloat16 use_cache use_flash_attention use_flash_attn xla_device
]]
local never_patterns = { "_token_ids?$", "^pad_token$", "dropout", "_pdrop$", "^summary_", "^pooler_" }

-- What types of a family read: words with a space behind each.
config_keys.sizes = "hidden_act hidden_size intermediate_size max_position_embeddings num_attention_heads \z
    num_hidden_layers tie_word_embeddings vocab_size "
config_keys.turned = config_keys.sizes .. "rope_parameters rope_scaling "
config_keys.llama = config_keys.turned
    .. "head_dim layer_types num_key_value_heads partial_rotary_factor rms_norm_eps rope_theta "
config_keys.bert = config_keys.sizes .. "is_decoder layer_norm_eps position_embedding_type type_vocab_size "

-- A function which says whether a value is that of the key `other` of the file, or `otherwise` without one.
local function same_as(other, otherwise)
    return function(value, config)
        local own = config[other]
        if own == nil or own == json.null then own = otherwise end
        return value == own
    end
end

local function is_width(value, _, m) return value == (m.head_dim or m.d // m.heads) end
local function is_share_of_d(value, _, m) return m.d % m.heads == 0 and value == m.d // m.heads end
local function is_full(value)
    for _, kind in ipairs(type(value) == "table" and value or { value }) do
        if kind ~= "full_attention" then return false end
    end
    return true
end

local experts = "a mixture of experts is not known here"
local scaled = "a factor at this place is not known here"
local made_from = " weights are not read; take the checkpoint that they were made from"
local factors, off = { false, 0, 1 }, { false, 0, "" }
local norms = "norms of q and k are not known here"

-- Keys that a type may have without reading them: { rule that is said, the values beside null that change nothing, if
-- these are others than `off` and empty ones: a list, or a function of value, file and model }.
local others = {
    add_cross_attention = { "attention to another model is not known here" },
    alibi = { "biases of scores by distance are not known here" },
    attention_multiplier = { scaled, factors },
    clip_qkv = { "clipped q, k and v are not known here" },
    compression_config = { "compressed" .. made_from },
    embedding_multiplier = { scaled, factors },
    embedding_size = { nil, same_as "hidden_size" },
    full_attn_mod = { nil, factors },
    head_dim = { "must be hidden_size / num_attention_heads", is_share_of_d },
    interpolate_factor = { nil, factors },
    is_causal = { nil, function(value, _, m) return value == not m.encoder end },
    layer_types = { nil, is_full },
    logits_scaling = { scaled, factors },
    moe_intermediate_size = { experts },
    n_routed_experts = { experts, factors },
    num_experts = { experts, factors },
    num_experts_per_tok = { experts, factors },
    num_key_value_heads = { "must be num_attention_heads", function(value, _, m) return value == m.heads end },
    num_local_experts = { experts, factors },
    partial_rotary_factor = { nil, same_as("rotary_pct", 0.25) },
    qk_layernorm = { norms },
    quantization = { "quantised" .. made_from },
    quantization_config = { "quantised" .. made_from },
    query_pre_attn_scalar = { nil, is_width },
    residual_multiplier = { scaled, factors },
    rope_theta = { nil, same_as("rotary_emb_base", 10000) },
    scale_attn_by_inverse_layer_idx = { "scores that are scaled by the layer's number are not known here" },
    sliding_window = { "a %s has none" },
    sliding_window_size = { nil, same_as "sliding_window" },
    use_bidirectional_attention = { "a decoder's tokens attend to no later ones here" },
    use_qk_norm = { norms },
}

-- Whether an object says that weights are FP8: by its method, or by its format, as compressed-tensors does.
local function says_fp8(object)
    local words = type(object) == "table" and tostring(object.quant_method) .. " " .. tostring(object.format) or ""
    return words:find "fp8" or words:find "float%-quantized"
end

-- Whether an object says that weights are FP8 with the scales of blocks that gen/weights/safetensors.h reads.
function config_keys.says_blocks(object)
    if type(object) ~= "table" or object.quant_method ~= "fp8" then return false end
    local size, format = object.weight_block_size, object.fmt or "e4m3"
    return type(size) == "table" and #size == 2 and size[1] == 128 and size[2] == 128 and format == "e4m3"
end

local function never_matters(key)
    if never[key] then return true end
    for _, pattern in ipairs(never_patterns) do
        if key:find(pattern) then return true end
    end
    return false
end

local function is_neutral(key, value, config, m)
    local values = others[key] and others[key][2] or off
    if value == json.null or key == "quantization_config" and config_keys.says_blocks(value) then return true end
    if type(values) == "function" then return values(value, config, m) end
    return one_of.contains(values, value) or type(value) == "table" and next(value) == nil
end

-- Raises one line for the first key of the decoded file `config` at `path` that is none of `reads`, the words of its
-- type, and that may change something. m: { d, heads, head_dim, encoder } of the model.
function config_keys.check(path, config, reads, m)
    local read = set(reads)
    for _, key in ipairs(lua_text.keys(config)) do
        local value = config[key]
        if not read[key] and not never_matters(key) and not is_neutral(key, value, config, m) then
            local rule = others[key] and others[key][1] or "is not known of a %s: take it out if it changes nothing"
            if says_fp8(value) then rule = "FP8" .. made_from end
            fields.refuse(path, key, value, (rule:gsub("%%s", config.model_type)))
        end
    end
end

return config_keys
