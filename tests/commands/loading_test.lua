-- Checkpoints are loaded strictly: what a model would leave out is refused with a line that says what helps, and what
-- `sample` writes is what the other commands read.
local check = require "tests.support.check"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"
local safetensors_bytes = require "gen.import.safetensors_bytes"

local works, refuses = program.works, program.refuses
local test = {}
local folder = program.folder()
local env = { LOOKUPC_STORE = folder .. "/store.sqlite" }

local function path_of(name) return folder .. "/" .. name end

-- The tensors of a file: shapes by name.
local function shapes(path)
    local bytes = assert(host.read(path))
    local list = {}
    for name, entry in pairs(json.decode(bytes:sub(9, 8 + string.unpack("<I8", bytes)))) do
        list[name] = table.concat(entry.shape, " ")
    end
    return list
end

-- A copy of the checkpoint `from` in the file `name` whose tensors, { dtype, shape, bytes } by name, `change` has
-- changed.
local function changed_copy(from, name, change)
    local bytes, tensors = assert(host.read(from)), {}
    local start = 8 + string.unpack("<I8", bytes)
    for tensor, entry in pairs(json.decode(bytes:sub(9, start))) do
        local first, last = table.unpack(entry.data_offsets)
        local own = bytes:sub(start + 1 + first, start + last)
        tensors[tensor] = { dtype = entry.dtype, shape = entry.shape, bytes = own }
    end
    tensors = change(tensors) or tensors
    local list, to = {}, path_of(name)
    for tensor, t in pairs(tensors) do
        list[#list + 1] = { name = tensor, dtype = t.dtype, shape = t.shape, bytes = t.bytes }
    end
    table.sort(list, function(a, b) return a.name < b.name end)
    assert(host.write_file(to, safetensors_bytes.of(list)))
    return to
end

-- A copy of the checkpoint `from` with copies of tensors: names by name of the original.
local function with_copies(from, copies)
    return changed_copy(from, "copies.safetensors", function(tensors)
        for name, copy in pairs(copies) do
            tensors[copy] = tensors[name]
        end
    end)
end

-- A copy of the checkpoint `from` with tensors of `count` ones added under `names`, and those in `without` taken out.
local function with(from, names, count, without)
    count = count or 4
    return changed_copy(from, "changed.safetensors", function(tensors)
        for _, name in ipairs(without or {}) do
            tensors[name] = nil
        end
        for _, name in ipairs(names) do
            tensors[name] = { dtype = "F32", shape = { count }, bytes = string.pack("<f", 1):rep(count) }
        end
    end)
end

-- A copy of the checkpoint `from` whose names are changed by gsub(pattern, by).
local function renamed(from, pattern, by)
    return changed_copy(from, "renamed.safetensors", function(tensors)
        local others, changes = {}, 0
        for name, tensor in pairs(tensors) do
            local other, count = name:gsub(pattern, by)
            others[other], changes = tensor, changes + count
        end
        check.equal(changes > 0, true)
        return others
    end)
end

local function transformer(name, changes)
    local text = [[
local m = { name = "%s", layers = 2, vocab = 20, d = 16, heads = 2, attention = { rope = {}, context = 8 },
    ffn = { kind = "mlp", f = 24, activation = "relu" } }
%s
return m]]
    return program.model(folder, name, text:format(name, changes))
end

local lookup = [[ m.ffn = { kind = "lookup", h = 2, tau = 3, projection = { kind = "dense" }, score = "one" } ]]

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

local tail = "; --ignore PATTERNS leaves it out"

function test.what_a_transformer_leaves_out_is_refused()
    local cases = {
        {
            "model.layers.0.input_layernorm.weight",
            "is no part of model t: the model file has no norm" .. tail,
        },
        { "model.layers.2.mlp.up_proj.weight", "is no part of model t: the model file has layers = 2" .. tail },
        { "model.layers.1.self_attn.q_norm.weight", ": lookupc has no norms of q and k" .. tail },
        { "model.layers.1.self_attn.k_norm.weight", ": lookupc has no norms of q and k" .. tail },
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
    works { "verify", model, "--weights", changed, "--ignore", words[#words], "--isa", "scalar", "--cflags", "-O1" }
end

function test.fp8_checkpoints_are_called_so()
    local model, weights, fp8 = transformer("t", ""), path_of "t.safetensors", path_of "fp8.safetensors"
    works { "sample", model, "-o", weights }
    program.python(
        [[
tensors = load(sys.argv[1])
for name in [name for name in tensors if name.endswith("proj.weight")]:
    tensors[name] = "F8_E4M3", tensors[name][1]
    tensors[name + "_scale_inv"] = "F32", np.ones((1, 1))
save(sys.argv[2], tensors)
]],
        weights,
        fp8
    )
    refuses(1, "proj.weight: dtype: F8_E4M3, which is FP8: must be F32, F16, BF16 or F64; take the checkpoint", {
        "pack",
        model,
        "--weights",
        fp8,
        "-o",
        path_of "never",
    })
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

-- Old checkpoints call tensors of norms gamma and beta: what a model has no norm for is left over under either name.
function test.other_names_are_left_over_like_the_usual_ones()
    local no_norm, layers = "the model file has no norm" .. tail, "the model file has layers = 2" .. tail
    local weights, never = path_of "o.safetensors", path_of "never"
    local function refused(model, name, reason, ...)
        local changed = with(weights, { name })
        local line = ": tensor " .. name .. ": is no part of model " .. model:match "([^/]*)%.lua$" .. ": " .. reason
        refuses(1, changed .. line, { "pack", model, "--weights", changed, "-o", never, ... })
        return changed, line
    end
    local model = transformer("o", "m.checkpoint = 'bert'")
    works { "sample", model, "-o", weights }
    local first, last = "bert.encoder.layer.0.output.LayerNorm.", "bert.encoder.layer.7.output.LayerNorm."
    refused(model, last .. "beta", layers)
    refused(model, first .. "beta", no_norm)
    local changed, line = refused(model, first .. "gamma", no_norm)
    for _, words in ipairs {
        { "verify", model },
        { "tune", model, "--time", "0", "-o", never },
    } do
        table.move({ "--isa", "scalar", "--weights", changed }, 1, 4, #words + 1, words)
        refuses(1, line, words, { env = env })
    end
    -- fuse copies what follows the blocks, and nothing of them.
    model = transformer("q", "m.checkpoint = 'bert' m.attention.eliminate = 'QP'")
    works { "sample", model, "--unfused", "-o", weights }
    changed = with(weights, { first .. "gamma", "cls.predictions.decoder.bias" })
    refuses(1, ": tensor " .. first .. "gamma: is no part of model q: " .. no_norm, {
        "fuse",
        model,
        "--weights",
        changed,
        "-o",
        never,
    })
    model = transformer("l", "")
    works { "sample", model, "-o", weights }
    refused(model, "model.layers.0.extra.LayerNorm.gamma", no_norm)
    -- RMSNorms have no bias under any name.
    model = transformer("rr", "m.checkpoint = 'bert' m.skip = true m.norm = { kind = 'rmsnorm' }")
    works { "sample", model, "-o", weights }
    refused(model, first .. "beta", 'the model file has norm.kind = "rmsnorm", which has no bias' .. tail)
    -- LookupFFNs have no other names: their checkpoints are younger.
    model = program.model(
        folder,
        "layer",
        "return { name = 'layer', d = 32, h = 2, tau = 3, projection = { kind = 'dense' }, score = 'one' }"
    )
    works { "sample", model, "--prefix", "a.", "-o", weights }
    refused(model, "a.LayerNorm.gamma", no_norm, "--prefix", "a.")
    refused(model, "a.LayerNorm.beta", no_norm, "--prefix", "a.", "--arithmetic", "integer")
end

-- Some programs save a tensor under both of its names. With other values one of them would be dropped.
function test.two_names_of_a_tensor()
    local norm = "m.skip = true m.norm = { kind = 'layernorm' } m.checkpoint = 'bert'"
    local model, weights, never = transformer("c", norm), path_of "c.safetensors", path_of "never"
    works { "sample", model, "-o", weights }
    works { "pack", model, "--weights", weights, "-o", path_of "wanted.bin" }
    local start = "bert.encoder.layer.1.output.LayerNorm."
    local copies = { [start .. "weight"] = start .. "gamma", [start .. "bias"] = start .. "beta" }
    for _, bare in ipairs { false, true } do
        local both = with_copies(weights, copies)
        if bare then both = renamed(both, "^bert[.]", "") end
        works { "pack", model, "--weights", both, "-o", path_of "found.bin" }
        check.equal(host.read(path_of "found.bin"), host.read(path_of "wanted.bin"))
    end
    local function refused(changed, first, second)
        local line = ": tensors %s and %s: are names of one tensor and must be equal; --ignore %s leaves it out"
        refuses(1, changed .. line:format(first, second, first), {
            "pack",
            model,
            "--weights",
            changed,
            "-o",
            never,
        })
        works { "pack", model, "--weights", changed, "--ignore", first, "-o", path_of "found.bin" }
        check.equal(host.read(path_of "found.bin"), host.read(path_of "wanted.bin"))
    end
    refused(with(weights, { start .. "gamma" }, 16), start .. "gamma", start .. "weight")
    refused(with(weights, { start .. "beta" }, 15), start .. "beta", start .. "bias") -- another shape
    -- The head of a whole model.
    local function head(changes)
        return transformer(
            "h",
            norm .. " m.checkpoint = 'roberta' m.attention.rope = nil m.attention.causal = false m.positions = 8 \z
                m.embedding = {} m.output = { head = { bias = true } } " .. changes
        )
    end
    model = head ""
    works { "sample", model, "-o", weights }
    works { "pack", model, "--weights", weights, "-o", path_of "wanted.bin" }
    local both = with_copies(weights, { ["lm_head.bias"] = "lm_head.decoder.bias" })
    works { "pack", model, "--weights", both, "-o", path_of "found.bin" }
    check.equal(host.read(path_of "found.bin"), host.read(path_of "wanted.bin"))
    local changed = with(weights, { "lm_head.decoder.bias" }, 20)
    refused(changed, "lm_head.decoder.bias", "lm_head.bias")
    refuses(1, "tensors lm_head.decoder.bias and lm_head.bias: ", {
        "verify",
        model,
        "--weights",
        changed,
        "--isa",
        "scalar",
    })
    -- The matrix of a tied head is the word embedding.
    model = head "m.tied = true"
    works { "sample", model, "-o", weights }
    works { "pack", model, "--weights", weights, "-o", path_of "wanted.bin" }
    both = with_copies(weights, { ["roberta.embeddings.word_embeddings.weight"] = "lm_head.decoder.weight" })
    works { "pack", model, "--weights", both, "-o", path_of "found.bin" }
    check.equal(host.read(path_of "found.bin"), host.read(path_of "wanted.bin"))
    local other = with(weights, { "lm_head.decoder.weight" }, 20)
    refused(other, "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight")
    model = head "m.output.head.bias = nil"
    works { "sample", model, "-o", weights }
    for name, key in pairs {
        ["lm_head.decoder.bias"] = "output.head.bias",
        ["roberta.embeddings.LayerNorm.gamma"] = "embedding.norm",
    } do
        refuses(1, ": tensor " .. name .. ": is no part of model h: the model file has no " .. key .. tail, {
            "pack",
            model,
            "--weights",
            with(weights, { name }),
            "-o",
            never,
        })
    end
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

-- Bare models lack the prefix of their names, other programs put one before all, and old files have other norms: the
-- blob is the same.
function test.spellings()
    for _, case in ipairs {
        { "roberta", "^roberta[.]", "" },
        { "roberta", "^", "model." },
        { "lookupffn", "^roberta[.]", "", "^", "_orig_mod." },
        { "gpt2", "^transformer[.]", "" },
        { "bert", "LayerNorm[.]weight", "LayerNorm.gamma" },
        { "bert", "LayerNorm[.]bias", "LayerNorm.beta" },
    } do
        local kind = case[1]
        local norm = "m.skip = true m.norm = { kind = 'layernorm' }"
        local model = transformer("ss", norm .. " m.checkpoint = '" .. kind .. "'")
        local weights, wanted, found = path_of "s.safetensors", path_of "wanted.bin", path_of "found.bin"
        works { "sample", model, "-o", weights }
        works { "pack", model, "--weights", weights, "-o", wanted }
        for i = 2, #case, 2 do
            weights = renamed(weights, case[i], case[i + 1])
        end
        works { "pack", model, "--weights", weights, "-o", found }
        check.equal(host.read(found), host.read(wanted))
    end
    -- What is left out is called as in the file, and explained.
    local model, weights = transformer("b", "m.checkpoint = 'roberta'"), path_of "b.safetensors"
    works { "sample", model, "-o", weights }
    weights = renamed(with(weights, { "roberta.encoder.layer.2.output.dense.weight" }), "^roberta[.]", "")
    refuses(
        1,
        ": tensor encoder.layer.2.output.dense.weight: is no part of model b: the model file has layers = 2",
        { "pack", model, "--weights", weights, "-o", path_of "never" }
    )
end

-- Fused files keep the spelling of theirs.
function test.spellings_of_fused_files()
    local model, weights = transformer("ff", "m.checkpoint = 'roberta' m.attention.eliminate = 'QP'"), path_of "f.st"
    works { "sample", model, "--unfused", "-o", weights }
    works { "fuse", model, "--weights", renamed(weights, "^roberta[.]", ""), "-o", path_of "g.st" }
    check.equal(shapes(path_of "g.st")["encoder.layer.1.attention.self.key.weight"], "16 16")
    works { "fuse", model, "--weights", weights, "-o", path_of "h.st" }
    works { "pack", model, "--weights", path_of "g.st", "-o", path_of "g.bin" }
    works { "pack", model, "--weights", path_of "h.st", "-o", path_of "h.bin" }
    check.equal(host.read(path_of "g.bin"), host.read(path_of "h.bin"))
    works { "verify", model, "--isa", "scalar", "--cflags", "-O1", "--weights", path_of "renamed.safetensors" }
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

-- Published kernels of BH4 store its blocks in either order.
function test.blocks_of_models_stored_input_by_output()
    local ffn = "{ kind = 'lookup', h = 4, tau = 4, projection = { kind = 'bh4', block = 8 }, score = 'gelu' }"
    local common = ", d = 32, heads = 4, vocab = 50, skip = true, norm = { kind = 'rmsnorm' }, \z
        attention = { context = 80 }, "
    local turned, sampled = path_of "turned.safetensors", path_of "sampled.safetensors"
    local blobs, results = { path_of "a", path_of "b" }, { path_of "a.npy", path_of "b.npy" }
    for name, text in pairs {
        blocks = "layers = 2, ffn = " .. ffn,
        model = "embedding = {}, output = { head = {} }, layers = { {}, { ffn = "
            .. ffn
            .. " } }, ffn = { kind = 'glu', f = 40, activation = 'silu' }",
    } do
        local model = program.model(folder, name, "return { name = '" .. name .. "'" .. common .. text .. " }")
        works { "sample", model, "-o", sampled }
        program.python(
            [[
tensors = load(sys.argv[1])
for name in tensors:
    if name.endswith("hash.projection.weight"):
        dtype, values = tensors[name]
        tensors[name] = dtype, values.swapaxes(3, 4)
save(sys.argv[2], tensors)
]],
            sampled,
            turned
        )
        local input = path_of "input.npy"
        program.python(
            [[
rows = np.random.default_rng(1).normal(size=(80, 32)).astype("f4")
np.save(sys.argv[1], rows if sys.argv[2] == "blocks" else np.arange(80, dtype="i4") % 50)
]],
            input,
            name
        )
        local calibrated = { name == "blocks" and "--calibrate" or "--calibrate-ids", input, "--projection", "i8" }
        for _, more in ipairs { {}, calibrated } do
            local words = { "pack", model, "--weights", sampled, "-o", blobs[1], table.unpack(more) }
            works(words)
            words[4], words[6] = turned, blobs[2]
            words[#words + 1] = "--blocks-in-out"
            works(words)
            check.equal(host.read(blobs[1]) == host.read(blobs[2]), true, name)
        end
        local compiled = { "--isa", "scalar", "--cflags", "-O1" }
        works { "verify", model, "--weights", turned, "--blocks-in-out", table.unpack(compiled) }
        local of_input = name == "blocks" and "--input" or "--ids"
        local function run(weights, output, ...)
            local words = { "run", model, "--weights", weights, of_input, input, "--output", output, ... }
            works(table.move(compiled, 1, #compiled, #words + 1, words))
        end
        run(sampled, results[1])
        run(turned, results[2], "--blocks-in-out")
        check.equal(host.read(results[1]) == host.read(results[2]), true, name)
        run(turned, results[2])
        check.equal(host.read(results[1]) ~= host.read(results[2]), true, name)
    end
    local rest = "layers = 1, ffn = { kind = 'glu', f = 8, activation = 'silu' } }"
    local dense = program.model(folder, "dense", "return { name = 'dense'" .. common .. rest)
    local message = "--blocks-in-out: is for lookup FFNs with projection.kind = bh4: dense has none"
    refuses(2, message, { "pack", dense, "--weights", sampled, "-o", blobs[1], "--blocks-in-out" })
end

function test.eight_are_named()
    local names = {}
    for i = 1, 12 do
        names[i] = string.format("extra.%02d", i)
    end
    local model, weights = "gen/models/tiny.lua", path_of "tiny.safetensors"
    works { "sample", model, "-o", weights }
    local changed = with(weights, names)
    local function pack(...) return { "pack", model, "--weights", changed, "-o", path_of "b.bin", ... } end
    refuses(
        1,
        ": tensors "
            .. table.concat(names, ", ", 1, 8)
            .. " and 4 more: are no part of model tiny; --ignore PATTERNS leaves them out",
        pack()
    )
    refuses(1, ": tensors extra.10, extra.11, extra.12: are no part", pack("--ignore", "extra.0?"))
    refuses(1, ": tensors extra.01, extra.02, ", pack("--ignore", "xtra.*,extra,extra.1?.,extra%d"))
    refuses(2, '--ignore: "extra.*,": must be names, separated by commas', pack("--ignore", "extra.*,"))
    works(pack("--ignore", "extra.0*,extra.1?"))
    works(pack("--ignore", "*"))
    refuses(1, "--ignore: extra.x*: " .. changed .. " has no such tensor", pack("--ignore", "extra.*,extra.x*"))
end

-- A layer is all that lies under its prefix; without one it is the whole checkpoint.
function test.layers_and_prefixes()
    local weights = path_of "layer.safetensors"
    local model = program.model(
        folder,
        "layer",
        "return { name = 'layer', d = 32, h = 2, tau = 3, projection = { kind = 'dense' }, score = 'one' }"
    )
    works { "sample", model, "--prefix", "a.FFN.", "-o", weights }
    local function pack(changed, ...)
        return { "pack", model, "--weights", changed, "--prefix", "a.FFN.", "-o", path_of "b.bin", ... }
    end
    works(pack(with(weights, { "a.dense.weight", "b.FFN.tables", "a.FFNtables" })))
    local changed = with(weights, { "a.FFN.LayerNorm.weight" })
    refuses(
        1,
        "tensor a.FFN.LayerNorm.weight: is no part of model layer: the model file has no norm" .. tail,
        pack(changed)
    )
    refuses(1, "tensor a.FFN.LayerNorm.weight: ", {
        "verify",
        model,
        "--weights",
        changed,
        "--prefix",
        "a.FFN.",
        "--isa",
        "scalar",
    })
    refuses(1, "tensor a.FFN.LayerNorm.weight: ", pack(changed, "--arithmetic", "integer"))
    refuses(1, "tensor hash.projection.weight is missing; give --prefix a.FFN.\n", {
        "pack",
        model,
        "--weights",
        changed,
        "-o",
        path_of "never",
    })
end

-- verify takes the checkpoint that pack takes, and the one that fuse takes, which it fuses.
function test.verify_takes_either_checkpoint()
    local model = transformer("v", "m.attention.eliminate = 'QP'")
    for _, row in ipairs { { "--unfused", true }, { "--seed=1", false } } do
        local weights = path_of "v.safetensors"
        works { "sample", model, row[1], "-o", weights }
        local found =
            json.decode(works { "verify", model, "--weights", weights, "--isa", "scalar", "--json", "--cflags", "-O1" })
        check.equal(found.results[1].rel_err ~= nil, row[2])
    end
end

-- The line of Python in the message is Python, and converts: here with a torch of stand-ins.
function test.checkpoints_of_pytorch()
    local there = program.folder()
    local stand_ins = [[
import numpy as np
class Tensor(np.ndarray):
    def clone(self): return self.copy()
    def contiguous(self): return self
def is_tensor(value): return isinstance(value, Tensor)
def load(path, map_location, weights_only):
    assert map_location == "cpu" and weights_only and open(path, "rb").read(2) == b"PK"
    return { "epoch": 3, "state_dict": { "step": 7, "bias": np.ones(4, "<f4").view(Tensor) } }
]]
    works { "sample", "gen/models/tiny.lua", "-o", there .. "/good" }
    assert(host.write_file(there .. "/torch.py", stand_ins))
    assert(process.run { "mkdir", there .. "/safetensors" })
    assert(host.write_file(
        there .. "/safetensors/torch.py",
        [[
def save_file(tensors, path):
    with open(path, "w") as file:
        file.write(" ".join(f"{name} {list(values)}" for name, values in tensors.items()))
]]
    ))
    for _, row in ipairs {
        { "model.ckpt", "PK\3\4" .. ("\0"):rep(100), "a ZIP file, as PyTorch checkpoints are; " },
        { "model", "PK\3\4" .. ("\0"):rep(100), "a ZIP file, as PyTorch checkpoints are; " },
        { "model.pt", "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", "a PyTorch checkpoint; " },
        { "pytorch_model.bin", "", "by its name a PyTorch checkpoint; " },
        { "cut.pth", assert(host.read(there .. "/good")):sub(1, 40), "by its name a PyTorch checkpoint; " },
    } do
        local path = there .. "/" .. row[1]
        assert(host.write_file(path, row[2]))
        local words = { "pack", "gen/models/tiny.lua", "--weights", path, "-o", there .. "/never" }
        refuses(
            1,
            path .. ": is not a safetensors file but " .. row[3] .. "convert it with Python: import torch; ",
            words
        )
        if row[2]:find "^PK" then
            local line = program.run(words).errors:match "convert it with Python: (.-)\n"
            local script = "import sys; sys.path.insert(0, '.')\n" .. line
            local result = assert(process.run({ "/usr/bin/python3", "-c", script }, { directory = there }))
            if result.status ~= 0 then error(result.output) end
            check.matches(assert(host.read(there .. "/model.safetensors")), "^bias %[.*1%.0.*%]$")
            assert(host.remove(there .. "/model.safetensors"))
        end
    end
    -- A safetensors file of any name is one.
    assert(host.write_file(there .. "/good.bin", assert(host.read(there .. "/good"))))
    works { "pack", "gen/models/tiny.lua", "--weights", there .. "/good.bin", "-o", there .. "/b" }
    refuses(1, "is not a safetensors file but a blob of lookupc pack: give the checkpoint that it was packed from", {
        "pack",
        "gen/models/tiny.lua",
        "--weights",
        there .. "/b",
        "-o",
        there .. "/never",
    })
end

function test.folders_without_a_checkpoint()
    local there = program.folder()
    local packing = { "pack", "gen/models/tiny.lua", "--weights", there, "-o", path_of "b.bin" }
    local function refused(message) refuses(1, there .. ": " .. message, packing) end
    local function without(fragment)
        refused("is a folder without model.safetensors and model.safetensors.index.json" .. fragment)
    end
    without "\n"
    assert(host.write_file(there .. "/pytorch_model.bin", "PK\3\4"))
    without "; its pytorch_model.bin is in another format: give its path to be told how to convert it\n"
    works { "sample", "gen/models/tiny.lua", "-o", there .. "/tiny.safetensors" }
    without "; it has tiny.safetensors: give the path of that file\n"
    works { "sample", "gen/models/tiny.lua", "-o", there .. "/a.safetensors" }
    without "; of its 2 files such as a.safetensors an index must say which tensors are where\n"
    assert(host.write_file(there .. "/model.safetensors", assert(host.read(there .. "/a.safetensors"))))
    works(packing)
    assert(host.write_file(there .. "/model.safetensors.index.json", '{ "weight_map": {} }'))
    refused "has both model.safetensors.index.json and model.safetensors: give the path of one"
end

return test
