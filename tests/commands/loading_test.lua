-- Checkpoints are loaded strictly: what a model would leave out is refused with a line that says what helps, and what
-- `sample` writes is what the other commands read.
local check = require "tests.support.check"
local checkpoints = require "tests.support.checkpoints"
local host = require "host"
local program = require "tests.support.program"

local works, refuses = program.works, program.refuses
local folder, path_of, shapes, with = checkpoints.folder, checkpoints.path_of, checkpoints.shapes, checkpoints.with
local transformer = checkpoints.transformer
local env = { LOOKUPC_STORE = folder .. "/store.sqlite" }
local lookup = [[ m.ffn = { kind = "lookup", h = 2, tau = 3, projection = { kind = "dense" }, score = "one" } ]]
local tail = "; --ignore PATTERNS leaves it out"
local test = {}

-- Every way to eliminate, in every kind of block and under the names of every kind of checkpoint that has it.
local eliminations = {
    { "none", "" },
    { "QP", "" },
    { "KP", "m.checkpoint = 'gpt_neox'" },
    { "VP", "m.checkpoint = 'roberta' m.positions = 8 m.token_types = 2" },
    { "QP", "m.tied = true m.kv_heads = 1 m.ffn.kind = 'glu'" },
    { "Q", "m.parallel = true m.kv_heads = 1" },
    { "Q", "m.parallel = true m.checkpoint = 'gpt_neox'" },
    { "K", "m.parallel = true m.checkpoint = 'roberta' m.tied = true" },
    { "V", "m.parallel = true" },
    { "VP", "m.checkpoint = 'gpt2' m.positions = 8 m.tied = true" },
    { "Q", "m.parallel = true m.checkpoint = 'mingpt'" },
    { "KP", "m.checkpoint = 'bert' m.positions = 8 m.token_types = 2" },
    { "QP", "m.checkpoint = 'lookupffn' m.positions = 8" },
    { "Q", lookup },
    { "QP", lookup },
    { "QKV", lookup },
    { "QKV", lookup .. "m.kv_heads = 1 m.checkpoint = 'roberta' m.positions = 8" },
    { "QKVP", lookup },
    { "none", "m.checkpoint = 'use' m.attention.rope = nil" },
    { "QP", "m.checkpoint = 'use' m.attention.rope = nil" },
    { "VP", "m.checkpoint = 'use' m.attention.rope = nil" },
    { "Q", "m.checkpoint = 'use' m.attention.rope = nil m.parallel = true" },
}

function test.what_sample_writes_is_what_pack_reads()
    local sampled, unfused, fused = path_of "s.safetensors", path_of "u.safetensors", path_of "f.safetensors"
    for i, row in ipairs(eliminations) do
        local word, changes = table.unpack(row)
        local name = "m" .. i
        local model = transformer(name, changes .. " m.attention.eliminate = '" .. word .. "'")
        local function pack(weights) return { "pack", model, "--weights", weights, "-o", path_of "b.bin" } end
        works { "sample", model, "-o", sampled }
        works(pack(sampled))
        works { "sample", model, "--unfused", "-o", unfused }
        if word == "none" then
            check.equal(shapes(unfused), shapes(sampled))
        else
            refuses(
                1,
                "no part of model " .. name .. ": run lookupc fuse first; --ignore PATTERNS leaves ",
                pack(unfused)
            )
            works { "fuse", model, "--weights", unfused, "-o", fused }
            works(pack(fused))
            check.equal(shapes(fused), shapes(sampled))
        end
    end
end

-- A model that is trained without projections has one checkpoint only.
function test.an_architecture_of_its_own_has_no_unfused_checkpoint()
    local model = transformer("own", "m.norm = { kind = 'rmsnorm' } m.skip = true m.attention.eliminate = 'QP'")
    local weights = path_of "own.safetensors"
    works { "sample", model, "-o", weights }
    works { "pack", model, "--weights", weights, "-o", path_of "b.bin" }
    refuses(1, 'attention.eliminate = "QP": such a model is trained with it: there is no unfused checkpoint', {
        "sample",
        model,
        "--unfused",
        "-o",
        path_of "never",
    })
    refuses(2, "--unfused: true: is for a transformer or a whole model, not for a LookupFFN", {
        "sample",
        "gen/models/tiny.lua",
        "--unfused",
        "-o",
        path_of "never",
    })
    check.equal(host.kind(path_of "never"), nil)
end

function test.what_a_transformer_leaves_out_is_refused()
    local cases = {
        {
            "model.layers.0.input_layernorm.weight",
            "is no part of model t: the model file has no norm" .. tail,
        },
        { "model.layers.2.mlp.up_proj.weight", "is no part of model t: the model file has layers = 2" .. tail },
        { "model.layers.1.self_attn.q_norm.weight", ": the model file has no attention.qk_norm" .. tail },
        { "model.layers.1.self_attn.k_norm.weight", ": the model file has no attention.qk_norm" .. tail },
        { "model.layers.1.self_attn.o_proj.bias", ": run lookupc fuse first" .. tail },
        { "model.layers.0.mlp.gate_proj.weight", ': the model file has ffn.kind = "mlp"' .. tail },
        { "model.layers.0.mlp.experts.3.w1.weight", ": is no part of model t" .. tail },
    }
    local model, weights, x = transformer("t", "m.attention.eliminate = 'QP'"), path_of "t.safetensors", path_of "x.npy"
    works { "sample", model, "-o", weights }
    program.python("np.save(sys.argv[1], np.ones((3, 16), '<f4'))", x)
    for i, case in ipairs(cases) do
        local changed = with(weights, { case[1] })
        local fragment = changed .. ": tensor " .. case[1] .. ": "
        for k, words in ipairs {
            { "pack", model, "-o", path_of "never" },
            { "run", model, "--input", x, "--output", path_of "never", "--isa", "scalar" },
            { "verify", model, "--isa", "scalar" },
            { "tune", model, "--isa", "scalar", "--time", "20s", "-o", path_of "never" },
            { "tune", model, "--isa", "scalar", "--time", "0", "-o", path_of "never" }, -- the store answers
        } do
            if k == 1 or i == 1 then
                words[#words + 1], words[#words + 2] = "--weights", changed
                refuses(1, fragment, words, { env = env })
                refuses(1, case[2], words, { env = env })
            end
        end
        check.equal(host.kind(path_of "never"), nil)
        works { "pack", model, "--weights", changed, "--ignore", case[1], "-o", path_of "b.bin" }
    end
    -- fuse says the same.
    works { "sample", model, "--unfused", "-o", weights }
    local changed, fused = with(weights, { "model.vision.proj.weight", cases[1][1] }), path_of "f.safetensors"
    local words = { "fuse", model, "--weights", changed, "-o", fused }
    refuses(
        1,
        ": tensors model.layers.0.input_layernorm.weight, model.vision.proj.weight: are no part of model t: the model \z
            file has no norm; --ignore PATTERNS leaves them out",
        words
    )
    words[#words + 1], words[#words + 2] = "--ignore", "model.vision.*,*layernorm.weight"
    works(words)
    works { "verify", model, "--weights", changed, "--ignore", words[#words], "--isa", "scalar", "--cflags", "-O0" }
end

function test.models_with_norms()
    local model, weights = transformer("n", "m.norm = { kind = 'rmsnorm' } m.skip = true"), path_of "n.safetensors"
    works { "sample", model, "-o", weights }
    refuses(1, ': the model file has norm.kind = "rmsnorm", which has no bias' .. tail, {
        "pack",
        model,
        "--weights",
        with(weights, { "model.layers.1.input_layernorm.bias" }, 16),
        "-o",
        path_of "never",
    })
    model = transformer("n", "m.norm = { kind = 'rmsnorm' } m.skip = true m.attention.eliminate = 'QP'")
    refuses(1, ': the model file has attention.eliminate = "QP", with which such a model is trained; ', {
        "pack",
        model,
        "--weights",
        weights,
        "-o",
        path_of "never",
    })
end

-- The names of the Universal Sentence Encoder's blocks do not all begin alike.
function test.blocks_of_the_sentence_encoder()
    local model, weights = transformer("u", "m.checkpoint = 'use' m.attention.rope = nil"), path_of "u.safetensors"
    works { "sample", model, "-o", weights }
    local graph, variables = "module_apply_default/Encoder_en/KonaTransformer/Encode/", "module/Encoder_en/"
    local norm_scale = "layer_prepostprocess/layer_norm/layer_norm_scale/ConcatPartitions/concat"
    works {
        "pack",
        model,
        "--weights",
        with(weights, {
            variables .. "hidden_layers/tanh_layer_0/weights",
            graph .. "TimingSignal/ExpandDims_1",
            graph .. "Layer_0/TransformerLayer/mul/y",
        }),
        "-o",
        path_of "b.bin",
    }
    for _, case in ipairs {
        { graph .. "TransformerStack/Layer_2/TransformerLayer/FFN/conv1/Tensordot/Reshape_1", "has layers = 2" },
        { graph .. "Layer_2/TransformerLayer/FFN/conv1/bias/ConcatPartitions/concat", "has layers = 2" },
        {
            variables .. "KonaTransformer/Encode/Layer_2/TransformerLayer/MultiheadAttention/x",
            "has layers = 2",
        },
        { graph .. "Layer_1/TransformerLayer/" .. norm_scale, "has no norm" },
    } do
        local changed = with(weights, { case[1] })
        local line = ": tensor " .. case[1] .. ": is no part of model u: the model file " .. case[2] .. tail
        refuses(1, changed .. line, { "pack", model, "--weights", changed, "-o", path_of "never" })
        refuses(1, changed .. line, { "verify", model, "--weights", changed, "--isa", "scalar" })
    end
    model = transformer("p", "m.checkpoint = 'use' m.attention.rope = nil m.attention.eliminate = 'QP'")
    works { "sample", model, "-o", weights }
    local kernel = "MultiheadAttention/output_transform_single/kernel/part_0"
    refuses(1, "part_0: is no part of model p: run lookupc fuse first" .. tail, {
        "pack",
        model,
        "--weights",
        with(weights, { variables .. "KonaTransformer/Encode/Layer_0/TransformerLayer/" .. kernel }),
        "-o",
        path_of "never",
    })
end

-- What fuse makes of the blocks alone is that of the whole model but for the head.
function test.unfused_whole_models()
    local blocks = "m.attention.eliminate = 'QP' "
    local weights, fused = path_of "w.safetensors", path_of "wf.safetensors"
    local model = transformer("ww", blocks)
    works { "sample", model, "--unfused", "-o", weights }
    works { "fuse", model, "--weights", weights, "-o", fused }
    model = transformer("ww", blocks .. "m.embedding = {} m.output = { head = {} }")
    local function pack(path) return { "pack", model, "--weights", path, "-o", path_of "w.bin" } end
    refuses(1, "run lookupc fuse first; --ignore PATTERNS", pack(weights))
    works(pack(fused))
end

-- What is not of the blocks is the caller's, and buffers hold no weights.
function test.firmware_of_a_layer_is_strict()
    for _, arithmetic in ipairs { "float", "integer" } do
        local model, weights = "gen/models/tiny.lua", path_of "tiny.safetensors"
        works { "sample", model, "-o", weights }
        local changed = with(weights, { "norm.weight" })
        local words = { "emit", model, "--profile", "firmware", "--target", "generic", "--arithmetic", arithmetic }
        for _, word in ipairs { "--without-misra", "--weights", changed, "-o", path_of "never" } do
            words[#words + 1] = word
        end
        refuses(1, changed .. ": tensor norm.weight: ", words)
        check.equal(host.kind(path_of "never"), nil)
    end
end

function test.what_may_lie_beside()
    for kind, names in pairs {
        llama = { "model.norm.weight", "score.weight", "model.layers.0.self_attn.rotary_emb.inv_freq", "extra" },
        gpt_neox = {
            "gpt_neox.final_layer_norm.bias",
            "gpt_neox.layers.1.attention.bias",
            "gpt_neox.layers.0.attention.masked_bias",
        },
        roberta = {
            "roberta.embeddings.LayerNorm.weight",
            "roberta.embeddings.position_ids",
            "lm_head.dense.bias",
            "classifier.out_proj.bias",
        },
        bert = { "bert.embeddings.LayerNorm.gamma", "cls.predictions.decoder.bias", "bert.pooler.dense.weight" },
        gpt2 = { "transformer.h.1.attn.bias", "transformer.h.0.attn.masked_bias", "transformer.ln_f.weight" },
        lookupffn = { "roberta.encoder.LayerNorm.weight", "lm_head.bias" },
    } do
        local model, weights = transformer(kind, "m.checkpoint = '" .. kind .. "'"), path_of "k.safetensors"
        works { "sample", model, "-o", weights }
        works { "pack", model, "--weights", with(weights, names), "-o", path_of "b.bin" }
    end
end

-- What is missing is said first, unless what is left out explains it: Q alone of a tensor of q, k and v is fused away.
function test.missing_tensors()
    local model, weights = transformer("t", "m.attention.eliminate = 'QP'"), path_of "t.safetensors"
    local function missing(fragment, names, without)
        refuses(1, fragment, {
            "pack",
            model,
            "--weights",
            with(weights, names, 4, without),
            "-o",
            path_of "never",
        })
    end
    works { "sample", model, "-o", weights }
    missing(
        "tensor model.layers.1.mlp.up_proj.weight is missing; did you mean model.layers.1.up_proj.weight?",
        { "model.layers.1.up_proj.weight" },
        { "model.layers.1.mlp.up_proj.weight" }
    )
    local key = "model.layers.0.self_attn.k_proj.weight"
    missing("tensor " .. key .. " is missing\n", {}, { key }) -- not that of layer 1, nor v_proj: the model uses both
    model = transformer("rr", "m.checkpoint = 'roberta'")
    works { "sample", model, "-o", weights }
    local query = "roberta.encoder.layer.0.attention.self.query.weight"
    missing(
        "tensor " .. query .. " is missing; did you mean roberta.encoder.layer.0.attention.query.weight?",
        { (query:gsub("self%.", "")) },
        { query }
    )
    model = transformer("g", "m.checkpoint = 'gpt_neox' m.attention.eliminate = 'QP'")
    works { "sample", model, "--unfused", "-o", weights }
    missing("run lookupc fuse first", {})
    -- Unfused ones are looked through, too, where the store answers and nothing is fused.
    model = transformer("ff", "m.attention.eliminate = 'QP'")
    works { "sample", model, "--unfused", "-o", weights }
    local gone = { "model.layers.1.self_attn.q_proj.weight", "model.layers.1.self_attn.o_proj.weight" }
    local changed = with(weights, {}, 4, gone)
    for _, words in ipairs {
        { "verify", model },
        { "fuse", model, "-o", path_of "never" },
        { "tune", model, "--time", "0", "-o", path_of "never" },
    } do
        words[#words + 1], words[#words + 2] = "--weights", changed
        if words[1] ~= "fuse" then
            words[#words + 1], words[#words + 2] = "--isa", "scalar"
        end
        refuses(1, changed .. ": tensor " .. gone[1] .. " is missing; did you mean ", words, { env = env })
    end
    check.equal(host.kind(path_of "never"), nil)
end

return test
