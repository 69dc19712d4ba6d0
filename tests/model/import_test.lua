-- What config.json of a transformer becomes as a model file, and what of it is refused.
local changed = require "tests.support.changed"
local check = require "tests.support.check"
local host = require "host"
local import = require "gen.import.import"
local json = require "json"
local model = require "gen.families.model_file"
local program = require "tests.support.program"
local published = require "tests.support.published_configs"

local works, refuses = program.works, program.refuses
local test = {}
local folder = program.folder()

-- The model of a config.json out of `fields`, and its text.
local function imported(fields, ...)
    local config, path = folder .. "/config.json", folder .. "/imported.lua"
    assert(host.write_file(config, assert(json.encode(fields))))
    works { "import", config, "-o", path, ... }
    return model.load(path), assert(host.read(path))
end

-- Refuses the config.json of `base`, nil: mistral, with `changes`.
local mistral
local function refused(changes, message, base)
    local config = folder .. "/refused.json"
    assert(host.write_file(config, assert(json.encode(changed(base or mistral, changes)))))
    local good, line = pcall(import.file, config, { output = folder .. "/refused.lua", eliminate = "none" })
    if good or line:sub(1, #config + 2 + #message) ~= config .. ": " .. message then
        error(string.format("%q, expected %q", good and "accepted" or line, message))
    end
end

mistral = {
    model_type = "mistral",
    _name_or_path = "mistralai/Mistral-7B-v0.1",
    hidden_size = 4096,
    num_attention_heads = 32,
    num_key_value_heads = 8,
    num_hidden_layers = 32,
    vocab_size = 32000,
    intermediate_size = 14336,
    hidden_act = "silu",
    max_position_embeddings = 32768,
    sliding_window = 4096,
    rope_theta = 10000.0,
    rms_norm_eps = 1e-05,
    tie_word_embeddings = false,
}

local pythia = {
    model_type = "gpt_neox",
    hidden_size = 4096,
    num_attention_heads = 32,
    num_hidden_layers = 32,
    vocab_size = 50432,
    intermediate_size = 16384,
    hidden_act = "gelu",
    max_position_embeddings = 2048,
    rotary_pct = 0.25,
    rotary_emb_base = 10000,
    layer_norm_eps = 1e-05,
    use_parallel_residual = true,
}

local roberta = {
    model_type = "roberta",
    hidden_size = 768,
    num_attention_heads = 12,
    num_hidden_layers = 12,
    vocab_size = 50265,
    intermediate_size = 3072,
    hidden_act = "gelu",
    max_position_embeddings = 514,
    type_vocab_size = 1,
    pad_token_id = 1,
    layer_norm_eps = 1e-05,
}

function test.import()
    local m, text = imported(mistral, "--skipless", "--eliminate", "QP")
    local expected = model.load "gen/models/mistral_7b_skipless.lua"
    expected.name, expected.attention.context, expected.attention.window = "mistral_7b_v0_1", 32768, 4096
    check.equal(m, expected)
    check.matches(text, "^%-%- From the config%.json of a mistral, without skip connections and norms%.\nreturn {\n")
    check.equal(imported(changed(mistral, { head_dim = 128 })), (imported(mistral)))
    check.equal(imported(changed(mistral, { head_dim = 256 })).head_dim, 256)
    m = imported(mistral)
    check.equal({ m.skip, m.norm }, { true, { kind = "rmsnorm", eps = 1e-5, place = "pre" } })

    m = imported(pythia, "--name", "pythia", "--skipless")
    check.equal(
        { m.name, m.checkpoint, m.parallel, m.ffn.kind, m.attention.rope },
        { "pythia", "gpt_neox", true, "mlp", { theta = 10000, share = 0.25, pairs = "half" } }
    )
    m = imported(roberta)
    check.equal(
        { m.name, m.positions, m.token_types, m.tied, m.norm.place, m.attention },
        { "roberta", 514, 1, true, "post", { eliminate = "none", context = 512, causal = false } }
    )
end

function test.rope_parameters_in_their_new_place()
    local m = imported(
        changed(mistral, { rope_theta = json.null, rope_parameters = { rope_type = "default", rope_theta = 1e6 } })
    )
    check.equal(m.attention.rope, { theta = 1000000, share = 1, pairs = "half" })
    m = imported(changed(pythia, {
        rotary_pct = 1.0,
        rope_parameters = { rope_type = "default", rope_theta = 5e5, partial_rotary_factor = 0.5 },
    }))
    check.equal(m.attention.rope, { theta = 500000, share = 0.5, pairs = "half" })
    m = imported(changed(mistral, { rope_theta = json.null, rope_scaling = { type = "default", rope_theta = 1e6 } }))
    check.equal(m.attention.rope, { theta = 1000000, share = 1, pairs = "half" })
    imported(changed(mistral, { rope_scaling = { rope_type = "default", factor = 1.0, rope_theta = json.null } }))
end

function test.scaled_rotary_positions()
    local function scaling(fields, place)
        return imported(changed(mistral, { [place or "rope_scaling"] = fields })).attention.rope.scaling
    end
    check.equal(scaling { type = "linear", factor = 2.0 }, { kind = "linear", factor = 2 })
    local llama3 = {
        rope_type = "llama3",
        factor = 8.0,
        low_freq_factor = 1.0,
        high_freq_factor = 4.0,
        original_max_position_embeddings = 8192,
    }
    local wanted = { kind = "llama3", factor = 8, original = 8192, slow = 1, fast = 4 }
    check.equal(scaling(llama3), wanted)
    check.equal(scaling(llama3, "rope_parameters"), wanted)
    local yarn = { kind = "yarn", factor = 4, original = 32768, slow = 1, fast = 32, truncate = true }
    check.equal(scaling { rope_type = "yarn", factor = 4.0 }, yarn)
    yarn.attention_factor, yarn.truncate = 1.5, false
    check.equal(scaling { rope_type = "yarn", factor = 4.0, attention_factor = 1.5, truncate = false }, yarn)
    local found = scaling { rope_type = "yarn", factor = 40.0, mscale = 1.0, mscale_all_dim = 0.5 }.attention_factor
    check.equal(string.format("%.9f", found), "1.155721990") -- (0.1 ln 40 + 1) / (0.05 ln 40 + 1)
end

function test.windows_of_some_layers()
    local qwen2 = { model_type = "qwen2", use_sliding_window = true, max_window_layers = 3, num_hidden_layers = 4 }
    local attention = imported(changed(mistral, qwen2)).attention
    check.equal({ attention.window, attention.full_layers }, { 4096, { 0, 1, 2 } })
    local alternating = {}
    for layer = 1, 32 do
        alternating[layer] = layer % 16 == 0 and "full_attention" or "sliding_attention"
    end
    local fields = { model_type = "qwen2", use_sliding_window = true, layer_types = json.array(alternating) }
    attention = imported(changed(mistral, fields)).attention
    check.equal({ attention.window, attention.full_layers }, { 4096, { 15, 31 } })
    fields.use_sliding_window = false
    refused(fields, "layer_types = sliding_attention: layer 0 of this qwen2 is of full_attention")
    fields.model_type = "mistral"
    refused(fields, "layer_types = full_attention: layer 15 of this mistral is of sliding_attention")
end

-- What transformers does not read of a type, with values that change nothing and others.
function test.keys_of_other_types()
    local function text_of(changes)
        local config = folder .. "/config.json"
        assert(host.write_file(config, assert(json.encode(changed(mistral, changes)))))
        return import.file(config, { output = folder .. "/imported.lua", eliminate = "none" }).text
    end
    local plain, slides = text_of {}, {}
    for layer = 1, 32 do
        slides[layer] = "sliding_attention"
    end
    for key, value in pairs {
        attn_logit_softcapping = json.null,
        clip_qkv = json.null,
        embedding_multiplier = 1.0,
        final_logit_softcapping = 0,
        is_causal = true,
        layer_types = slides,
        num_local_experts = 1,
        pruned_heads = {},
        query_pre_attn_scalar = 128,
        sliding_window_size = 4096,
        use_bidirectional_attention = false,
        use_cache = true,
        use_qk_norm = false,
    } do
        if text_of { [key] = value } ~= plain then error(key) end
    end
    local take_it_out = ": take it out if it changes nothing"
    for _, row in ipairs {
        { { is_causal = false }, "is_causal = false: is not known of a mistral" .. take_it_out },
        { { use_bidirectional_attention = true }, "use_bidirectional_attention = true: a decoder's tokens attend to" },
        { { model_type = "gemma" }, "sliding_window = 4096: a gemma has none" },
        { { attn_logit_softcapping = 50.0 }, "attn_logit_softcapping = 50.0: is not known of a mistral" },
        { { final_logit_softcapping = 30.0 }, "final_logit_softcapping = 30.0: is not known of a mistral" },
        { { query_pre_attn_scalar = 256 }, "query_pre_attn_scalar = 256: is not known of a mistral" },
        { { use_sliding_window = true }, "use_sliding_window = true: is not known of a mistral" },
        { { rotary_pct = 0.5 }, "rotary_pct = 0.5: is not known of a mistral" },
        { { vision_config = { depth = 3 } }, "vision_config: is not known of a mistral" },
        { { quantization = { bits = 4 } }, "quantization: quantised weights are not read; take the checkpoint that" },
        { { num_experts_per_tok = 2 }, "num_experts_per_tok = 2: a mixture of experts is not known here" },
        { { model_type = "phi", head_dim = 32 }, "head_dim = 32: must be hidden_size / num_attention_heads" },
    } do
        refused(row[1], row[2])
    end
    refused({ num_key_value_heads = 4 }, "num_key_value_heads = 4: must be num_attention_heads", pythia)
    refused({ rope_theta = 5e5 }, "rope_theta = 500000.0: is not known of a gpt_neox", pythia)
    imported(changed(pythia, { rope_theta = 10000.0, partial_rotary_factor = 0.25, num_key_value_heads = 32 }))
    imported(changed(roberta, { is_causal = false }))
    refused({ is_causal = true }, "is_causal = true: is not known of a roberta", roberta)
end

-- No harmless key of a published model is refused: its blocks and the whole of it.
function test.published_models()
    local path, output = folder .. "/config.json", folder .. "/published.lua"
    for name, text in pairs(published) do
        assert(host.write_file(path, text))
        for _, whole in ipairs { false, folder } do
            local options = { name = "m", output = output, eliminate = "none", folder = whole or nil }
            local good, result = pcall(import.file, path, options)
            if not good then error(name .. ": " .. result) end
        end
    end
end

-- Limits stand before loops.
function test.sizes_beyond_all_models()
    for key, most in pairs {
        num_hidden_layers = 4096,
        hidden_size = 65536,
        num_attention_heads = 65536,
        num_key_value_heads = 65536,
        intermediate_size = 1 << 20,
        vocab_size = 1 << 24,
        max_position_embeddings = 1 << 24,
    } do
        refused({ [key] = 2147483647 }, key .. " = 2147483647: must be at most " .. most)
    end
end

function test.heads_of_qwen3()
    local m = imported(changed(mistral, { model_type = "qwen3", rms_norm_eps = 1e-6, hidden_size = 2560 }))
    check.equal({ m.head_dim, m.attention.qk_norm, m.attention.window }, { 128, { eps = 1e-6 }, nil })
end

function test.gemma_2()
    local fields = { model_type = "gemma2", num_hidden_layers = 5, query_pre_attn_scalar = 144 }
    fields.tie_word_embeddings, fields.hidden_act = json.null, "gelu"
    local m = imported(changed(mistral, fields))
    local a = m.attention
    check.equal({ m.head_dim, m.checkpoint, m.tied, m.norm.place }, { 256, "gemma", true, "both" })
    check.equal({ m.ffn.activation, a.window, a.full_layers }, { "gelu_tanh", 4096, { 1, 3 } })
    check.equal({ a.scale, a.soft_cap }, { 1 / 12, 50 })
    fields.attn_logit_softcapping, fields.query_pre_attn_scalar = json.null, 256
    a = imported(changed(mistral, fields)).attention
    check.equal({ a.scale, a.soft_cap }, {})
end

function test.phi()
    local fields = { model_type = "phi", hidden_act = "gelu_new", sliding_window = json.null, rms_norm_eps = json.null }
    local m = imported(changed(mistral, fields))
    check.equal({ m.checkpoint, m.parallel, m.norm.shared, m.ffn.kind }, { "phi", true, true, "mlp" })
    check.equal({ m.ffn.activation, m.attention.rope.share, m.attention.window }, { "gelu_tanh", 0.5 })
    m = imported(changed(mistral, { model_type = "phi3" }))
    check.equal({ m.checkpoint, m.attention.window, m.attention.rope.share }, { "phi3", 4096, 1 })
    m = imported(changed(mistral, { model_type = "phi3", sliding_window = json.null }))
    check.equal(m.attention.window, nil)
end

-- transformers rotates int(head * share) values.
function test.a_share_of_a_head_is_cut_to_whole_values()
    local narrow = { hidden_size = 40, intermediate_size = 100, num_attention_heads = 4 }
    check.equal(imported(changed(pythia, narrow)).attention.rope.share, 0.2) -- 2 of 10
    narrow.hidden_size, narrow.rotary_pct = 200, 0.29
    check.equal(imported(changed(pythia, narrow)).attention.rope.share, 14 / 50) -- times 50 this is no integer
    local llama = { hidden_size = 40, num_attention_heads = 4, num_key_value_heads = 4, partial_rotary_factor = 0.65 }
    check.equal(imported(changed(mistral, llama)).attention.rope.share, 0.6)
end

function test.rope_of_a_share_of_a_llama()
    check.equal(imported(changed(mistral, { partial_rotary_factor = 0.5 })).attention.rope.share, 0.5)
end

-- RoBERTa-base has 125M weights: embeddings of words count once, those of positions too.
-- As Qwen's and DeepSeek's FP8 checkpoints say it.
function test.fp8_weights_become_float32()
    local config, path = folder .. "/config.json", folder .. "/imported.lua"
    local fp8 = { quant_method = "fp8", fmt = "e4m3", activation_scheme = "dynamic", weight_block_size = { 128, 128 } }
    local _, plain = imported(mistral)
    assert(host.write_file(config, assert(json.encode(changed(mistral, { quantization_config = fp8 })))))
    check.matches(works { "import", config, "-o", path }, "config.json: weights in FP8 become float32 when they are")
    check.equal(host.read(path), plain)
end

function test.weights_of_roberta()
    imported(roberta)
    local found = json.decode(works { "plan", folder .. "/imported.lua", "--json" }).weights
    check.equal(found.embeddings, (50265 + 514 + 1) * 768)
    check.equal(found.total, (50265 + 514 + 1) * 768 + 12 * (4 * 768 * 768 + 2 * 768 * 3072))
end

function test.import_refuses()
    local config, o = folder .. "/bad.json", folder .. "/never.lua"
    local gemma2 = changed(mistral, { model_type = "gemma2" })
    for _, case in ipairs {
        { "false", "must be an object" },
        { '"text"', "must be an object" },
        { "{", "1:1: " },
        { changed(mistral, { model_type = ("t"):rep(1000) }), "model_type = " .. ("t"):rep(60) .. ": must be one of" },
        {
            changed(mistral, { model_type = "t5" }),
            "model_type = t5: must be one of bert, gemma, gemma2, gpt2, gpt_neox, llama, mistral, phi, phi3, qwen2, q",
        },
        { changed(mistral, { hidden_size = json.null }), "hidden_size: is missing" },
        { changed(mistral, { hidden_size = "4096" }), "hidden_size = 4096: must be an integer" },
        { changed(mistral, { num_attention_heads = 33 }), "heads = 33: must divide d = 4096" },
        { changed(mistral, { num_key_value_heads = 5 }), "kv_heads = 5: must divide heads = 32" },
        { changed(mistral, { head_dim = -1 }), "head_dim = -1: must be an integer from 1 to 65536" },
        { changed(mistral, { hidden_act = "xielu" }), "hidden_act = xielu: must be one of gelu, " },
        {
            changed(mistral, { rope_scaling = { rope_type = "dynamic", factor = 4.0 } }),
            "rope_scaling = dynamic: frequencies that change with the length of the text are not known here",
        },
        {
            changed(mistral, { model_type = "phi3", rope_scaling = { type = "longrope", long_factor = { 1 } } }),
            "rope_scaling = longrope: frequencies that change with the length of the text are not known here",
        },
        {
            changed(mistral, { rope_scaling = { rope_type = "other", factor = 4.0 } }),
            "rope_scaling = other: must be one of default, linear, llama3, yarn",
        },
        { changed(mistral, { model_type = "phi3", sliding_window = 0 }), "sliding_window = 0: must be at least 1" },
        { changed(mistral, { rope_scaling = { rope_type = "linear" } }), "rope_scaling.factor: is missing" },
        {
            changed(mistral, { rope_scaling = { rope_type = "linear", factor = 2.0, beta_fast = 32 } }),
            "rope_scaling.beta_fast = 32: is not known of rotary positions of the kind linear",
        },
        {
            changed(mistral, {
                rope_parameters = { rope_type = "linear", factor = 2.0 },
                rope_scaling = { rope_type = "yarn", factor = 2.0 },
            }),
            "rope_scaling = yarn: must be absent beside rope_parameters = linear",
        },
        {
            changed(mistral, { rope_theta = 1e5, rope_scaling = { rope_type = "default", rope_theta = 1e6 } }),
            "rope_scaling.rope_theta = 1000000.0: must be 100000.0, as outside",
        },
        {
            changed(mistral, { rope_scaling = { type = "default", mrope_section = { 16, 24, 24 } } }),
            "rope_scaling.mrope_section: is not known of rotary positions of the kind default",
        },
        { changed(mistral, { rope_scaling = { factor = 2.0 } }), "rope_scaling.factor = 2.0: is not known" },
        { changed(mistral, { rope_scaling = { type = 7 } }), "rope_scaling.type = 7: must be a string" },
        {
            changed(pythia, { hidden_size = 48, num_attention_heads = 4, rotary_pct = 0.3 }),
            "rotary_pct = 0.3: rotates 3 of the 12 values of a head: must be an even number",
        },
        {
            changed(mistral, { rope_parameters = { rope_type = "llama3", rope_theta = 1e4 } }),
            "rope_parameters.factor: is missing",
        },
        { changed(mistral, { partial_rotary_factor = "half" }), "partial_rotary_factor = half: must be a number" },
        {
            changed(mistral, { quantization_config = { quant_method = "fp8", weight_block_size = { 64, 64 } } }),
            "quantization_config: FP8 weights are not read; take the checkpoint",
        },
        {
            changed(mistral, { compression_config = { format = "float-quantized" } }),
            "compression_config: FP8 weights are not read; take the checkpoint",
        },
        {
            changed(mistral, { quantization_config = { quant_method = "gptq" } }),
            "quantization_config: quantised weights are not read",
        },
        {
            changed(mistral, { num_local_experts = 8 }),
            "num_local_experts = 8: a mixture of experts is not known here",
        },
        {
            changed(mistral, { layer_types = { "full_attention", "sliding_attention" } }),
            "layer_types: must have 32 entries, a layer each, not 2",
        },
        {
            changed(mistral, { layer_types = { "chunked_attention" } }),
            "layer_types = chunked_attention: must be full_",
        },
        { changed(mistral, { model_type = "llama" }), "sliding_window = 4096: a llama has none" },
        { changed(mistral, { model_type = "llama", sliding_window = -3 }), "sliding_window = -3: a llama has none" },
        { changed(mistral, { sliding_window = 0 }), "sliding_window = 0: must be at least 1" },
        { changed(mistral, { num_hidden_layers = 0 }), "num_hidden_layers = 0: must be at least 1" },
        { changed(roberta, { pad_token_id = 600 }), "pad_token_id = 600: must leave positions" },
        { changed(mistral, { layer_types = { { "full_attention" } } }), "layer_types: must be a list of names" },
        { changed(gemma2, { attn_logit_softcapping = -1.0 }), "attention.soft_cap = -1: must be a number above 0" },
        { changed(gemma2, { query_pre_attn_scalar = -1 }), "query_pre_attn_scalar = -1: must be above 0" },
        { changed(gemma2, { query_pre_attn_scalar = 0 }), "query_pre_attn_scalar = 0: must be above 0" },
        {
            changed(roberta, { position_embedding_type = "relative_key" }),
            "position_embedding_type = relative_key: must be",
        },
    } do
        assert(host.write_file(config, type(case[1]) == "string" and case[1] or assert(json.encode(case[1]))))
        refuses(1, config .. ": " .. case[2], { "import", config, "-o", o })
    end
    -- What fuse would refuse.
    assert(host.write_file(config, assert(json.encode(pythia))))
    refuses(
        2,
        "--eliminate: QP: the P of a parallel block adds to the FFN's output and cannot be merged exactly",
        { "import", config, "-o", o, "--skipless", "--eliminate", "QP" }
    )
    check.equal(host.kind(o), nil)
end

return test
