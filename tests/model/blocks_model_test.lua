-- Transformers as model files: which are valid, what plan counts, and which commands refuse them.
local check = require "tests.support.check"
local dtype = require "gen.plan.dtype"
local host = require "host"
local json = require "json"
local model = require "gen.families.model_file"
local program = require "tests.support.program"

local works, refuses = program.works, program.refuses
local test = {}
local folder = program.folder()

-- A model file with `changes`, Lua source that changes the table t.
local function source(changes)
    return [[
local t = { name = "m", d = 64, heads = 8, layers = 2, vocab = 100,
    attention = { eliminate = "QP", rope = { theta = 10000 }, context = 128 },
    ffn = { kind = "mlp", f = 256, activation = "gelu" } }
]] .. (changes or "") .. "\nreturn t\n"
end

local function load(changes) return model.load(program.model(folder, "m", source(changes))) end

function test.defaults()
    check.equal(load(), {
        name = "m",
        d = 64,
        heads = 8,
        kv_heads = 8,
        layers = 2,
        vocab = 100,
        tied = false,
        parallel = false,
        skip = false,
        checkpoint = "llama",
        attention = {
            eliminate = "QP",
            rope = { theta = 10000, share = 1, pairs = "half" },
            context = 128,
            causal = true,
        },
        ffn = { kind = "mlp", f = 256, activation = "gelu" },
    })
    check.equal(
        load 't.attention = { context = 1 } t.norm = { kind = "rmsnorm" }'.attention,
        { eliminate = "none", context = 1, causal = true }
    )
    local ffn =
        load 't.ffn = { kind = "lookup", h = 8, tau = 4, projection = { kind = "bh4", block = 16 }, score = "gelu" } \z
            t.attention.eliminate = "QKV"'.ffn
    check.equal(ffn, {
        kind = "lookup",
        h = 8,
        tau = 4,
        projection = { kind = "bh4", block = 16, decay = 0.7 },
        score = "gelu",
        scale = "none",
        neighbours = 1,
    })
    check.equal(load('t.ffn = { kind = "lookup" } t.attention.eliminate = "none"').ffn, {
        kind = "lookup",
        h = 16,
        tau = 8,
        projection = { kind = "bh4", block = 16, decay = 0.7 },
        score = "gelu",
        scale = "none",
        neighbours = 2,
    })
    local narrow = load 't.d = 4 t.heads = 1 t.ffn = { kind = "lookup", h = 3 } t.attention.eliminate = "none"'.ffn
    check.equal({ narrow.h, narrow.neighbours, narrow.projection.block }, { 3, 1, 4 })
end

function test.rules()
    local bh4 =
        't.ffn = { kind = "lookup", h = 8, tau = 4, projection = { kind = "bh4", block = 16 }, score = "gelu" } '
    local beside = 't.ffn.dense = { kind = "mlp", f = 9, activation = "silu" } '
    local looked = bh4 .. "t.ffn.qkv, t.parallel, t.attention.eliminate = true, true, 'none' "
    for _, case in ipairs {
        { "t.heads = 7", "heads = 7: must divide d = 64" },
        { "t.heads = 7 t.head_dim = 10", 'eliminate = "QP": needs heads * head_dim = d = 64, not 70' },
        { "t.head_dim = 0", "head_dim = 0: must be an integer from 1 to 65536" },
        { "t.d_in = 32", "d_in = 32: must be d = 64: the next of 2 layers reads what is d wide" },
        { "t.layers = 1 t.d_in = 32", 'eliminate = "QP": needs d_in = d = 64, not 32' },
        { "t.layers = 1 t.d_in = 32 t.parallel = true", "d_in = 32: must be d = 64: attention and FFN of parallel" },
        { "t.heads = 0", "heads = 0: must be an integer from 1 to 65536" },
        { "t.kv_heads = 3", "kv_heads = 3: must divide heads = 8" },
        { "t.kv_heads = 16", "kv_heads = 16: must divide heads = 8" },
        { "t.layers = nil", "layers: required key is missing; it must be an integer from 1 to 4096" },
        { "t.vocab = 0", "vocab = 0: must be an integer" },
        { "t.parallel = 1", "parallel = 1: must be true or false" },
        { "t.attention.eliminate = 'PQ'", 'attention.eliminate = "PQ": must be "none" or "Q"' },
        { "t.attention.context = nil", "attention.context: required key is missing" },
        { "t.attention.window = 129", "attention.window = 129: must be at most attention.context = 128" },
        {
            "t.attention.window = 9 t.attention.shaped = true",
            "attention.shaped = true: must be absent beside attention.window = 9",
        },
        {
            "t.attention.rope.share = 0.3",
            "attention.rope: rotates share = 0.3 of heads of d / heads = 8: must be an even number of elements",
        },
        {
            "t.attention.eliminate = 'none' t.head_dim = 5",
            "attention.rope: rotates share = 1 of heads of head_dim = 5: must be an even number of elements",
        },
        {
            "t.attention.window, t.attention.full_layers = 9, { 1, 2 }",
            "attention.full_layers: has 2: must be below the number of layers, 2",
        },
        {
            "t.attention.window, t.attention.full_layers = 9, { 1, 1 }",
            "attention.full_layers = {...}: must be a list of rising integers from 0 to 4095",
        },
        {
            "t.attention.full_layers = { 1 }",
            "attention.full_layers: is of layers without attention.window, which is missing",
        },
        { "t.attention.window = 0", 'window = 0: must be an integer from 1 to 16777216 without kind = "lsh"' },
        { "t.attention.kind = 'yoso'", 'attention.kind = "yoso": must be "exact" or "lsh"' },
        { "t.attention.tau = 8", 'attention.tau = 8: only for kind = "lsh"' },
        { "t.attention.kind, t.attention.tau = 'lsh', 17", "attention.tau = 17: must be an integer from 1 to 16" },
        { "t.attention.kind, t.attention.tau = 'lsh', 9", "tau = 9: must be at most the width of a head, filled" },
        {
            "t.head_dim = 16 t.attention = { kind = 'lsh', tables = 17, tau = 16, context = 128 }",
            "attention.tables = 17: times 2^tau, 65536, must be at most 1048576",
        },
        { "t.attention.kind, t.attention.eps = 'lsh', 0", "attention.eps = 0: must be a number from 1e-6 to 1" },
        { "t.attention.kind, t.attention.seed = 'lsh', -1", "seed = -1: must be an integer from 0 to 4294967295" },
        { "t.attention.kind, t.attention.window = 'lsh', 129", "window = 129: must be at most attention.context" },
        { "t.attention.kind, t.attention.soft_cap = 'lsh', 2", 'kind = "lsh": needs attention without soft_cap' },
        { "t.attention.kind, t.attention.unit = 'lsh', true", 'kind = "lsh": needs attention without unit' },
        { "t.attention.kind, t.attention.cache = 'lsh', 'k'", 'kind = "lsh": needs attention without cache' },
        { "t.attention.kind, t.attention.shaped = 'lsh', true", 'kind = "lsh": needs attention without shaped' },
        { "t.attention.cache = 'v'", 'attention.cache = "v": must be "kv" or "k"' },
        { "t.attention.cache, t.kv_heads = 'k', 4", "cache = \"k\": needs kv_heads = heads: K is a 32 by 64 matrix" },
        { "t.attention.cache, t.attention.causal = 'k', false", 'cache = "k": needs attention.causal = true' },
        {
            "t.attention.cache, t.attention.eliminate, t.head_dim = 'k', 'none', 6",
            'cache = "k": needs heads * head_dim = 64, the width of the block\'s input, not 48: K has no inverse',
        },
        { "t.attention.cache, t.attention.shaped = 'k', true", 'cache = "k": needs attention without shaped' },
        { "t.attention.cache, t.attention.unit = 'k', true", 'cache = "k": needs attention without unit' },
        { "t.attention.cache, t.attention.shifted = 'k', 1", 'cache = "k": needs attention without shifted' },
        { "t.attention.cache, t.attention.eliminate = 'k', 'VP'", 'eliminate = "VP": needs attention.cache = "kv"' },
        {
            "t.attention.qk_norm = {}",
            'attention.eliminate = "QP": needs attention without qk_norm',
        },
        {
            "t.attention.unit, t.attention.scale = true, 1",
            "attention.unit = true: must be absent beside attention.scale",
        },
        {
            "t.attention.eliminate, t.attention.unit, t.attention.qk_norm = 'VP', true, {}",
            "attention.unit = true: must be absent beside attention.qk_norm",
        },
        { "t.attention.shifted = 9", "attention.shifted = 9: must be at most kv_heads = 8" },
        {
            "t.attention.rope.scaling = { kind = 'llama3', factor = 8, original = 64, slow = 4, fast = 4 }",
            "attention.rope.scaling.fast = 4: must be above slow = 4",
        },
        {
            "t.attention.rope = { theta = 1, scaling = { kind = 'yarn', factor = 8, original = 64, fast = 32 } }",
            'attention.rope.theta = 1: must be above 1 for scaling.kind = "yarn"',
        },
        {
            "t.attention.rope.scaling = { kind = 'linear', factor = 8, original = 64 }",
            'attention.rope.scaling.original = 64: only for kind = "llama3" or "yarn"',
        },
        { "t.attention.rope.tetha = 1", 'attention.rope.tetha = 1: unknown key; did you mean "theta"?' },
        { "t.ffn.activation = 'tanh'", 'ffn.activation = "tanh": must be "gelu" or' },
        { "t.ffn.h = 8", 'ffn.h = 8: only for kind = "lookup"' },
        { "t.ffn.dense = {}", 'ffn.dense = {...}: only for kind = "lookup"' },
        { bh4 .. "t.ffn.dense = 8", "ffn.dense = 8: must be a table of kind, f, activation" },
        { bh4 .. "t.ffn.dense = {}", 'ffn.dense.kind: required key is missing; it must be "mlp" or "glu"' },
        { bh4 .. "t.ffn.dense = { kind = 'mlp', h = 2 }", 'ffn.dense.h = 2: unknown key; did you mean "f"?' },
        { bh4 .. beside .. "t.ffn.dense.f = 0", "ffn.dense.f = 0: must be an integer from 1 to 1048576" },
        {
            bh4 .. beside .. "t.attention.eliminate = 'QKV'",
            'attention.eliminate = "QKV": needs an FFN without ffn.dense: tables hold q, k and v',
        },
        { "t.ffn.qkv = true", 'ffn.qkv = true: only for kind = "lookup"' },
        { bh4 .. "t.ffn.qkv = 1", "ffn.qkv = 1: must be true or false" },
        { bh4 .. "t.ffn.qkv = true", "ffn.qkv = true: needs parallel = true" },
        { looked .. "t.attention.eliminate = 'Q'", 'eliminate = "Q": must be none beside ffn.qkv: the blocks have no' },
        { looked .. beside, "ffn.qkv = true: needs an FFN without ffn.dense" },
        { looked .. "t.attention.cache = 'k'", "ffn.qkv = true: needs attention without cache" },
        { looked .. "t.norm = { kind = 'rmsnorm', place = 'both' }", 'needs norm.place = "pre", not "both"' },
        { "t.norm = { kind = 'rmsnorm', shared = true }", "norm.shared = true: needs parallel = true: serial blocks" },
        { looked .. "t.norm = { kind = 'rmsnorm', shared = true }", "must be absent beside ffn.qkv, which has one" },
        {
            "t.parallel = true t.norm = { kind = 'rmsnorm', place = 'post', shared = true }",
            'norm.shared = true: needs norm.place = "pre", not "post"',
        },
        { looked .. "t.head_dim = 4", "ffn.qkv = true: needs heads * head_dim = d = 64, not 32: heads' outputs" },
        { "t.ffn = { kind = 'lookup', f = 3 }", 'ffn.f = 3: only for kind = "mlp" or "glu"' },
        { bh4 .. "t.ffn.projection.block = 3", "ffn.projection.block = 3: must be a power of two from 2 to 64" },
        { bh4 .. "t.ffn.neighbours = 17", "ffn.neighbours = 17: must be at most 2^tau = 16" },
        { "t.attention.eliminate = 'QKV'", 'attention.eliminate = "QKV": needs ffn.kind = "lookup" in serial blocks' },
        {
            "t.kv_heads = 2 t.attention.eliminate = 'KP'",
            'attention.eliminate = "KP": needs kv_heads = heads: K is a 64 by 16 matrix and has no inverse; Q can be \z
                eliminated',
        },
        {
            "t.kv_heads = 1 t.attention.eliminate = 'VP'",
            'attention.eliminate = "VP": needs kv_heads = heads: V is a 64 by 8 matrix and has no inverse; Q can be \z
                eliminated',
        },
        { "t.norm = { kind = 'batchnorm' }", 'norm.kind = "batchnorm": must be "layernorm" or "rmsnorm"' },
        { "t.checkpoint = 't5'", 'checkpoint = "t5": must be "llama" or' },
        { "t.tau = 3", "tau = 3: unknown key; the keys are name, d, heads" },
    } do
        local good, message = pcall(load, case[1])
        if good or not message:find(case[2], 1, true) or message:find "\n" then
            error(string.format("%s: got %q, expected %q", case[1], tostring(message), case[2]))
        end
    end
end

-- The digest of a blob covers the model: a key that changes nothing would make blobs stale.
function test.widths_that_hold_without_their_keys_make_no_other_model()
    check.equal(load "t.head_dim = 8 t.d_in = 64", load())
    local other = load "t.head_dim = 16 t.attention.eliminate = 'none'"
    check.equal(other.head_dim, 16)
end

function test.an_error_names_its_line()
    local path = program.model(
        folder,
        "line",
        'return {\n    name = "m", d = 64, heads = 8, layers = 2, vocab = 100,\n    attention = { context = \z
            8,\n        rope = { theta = 0 } },\n    ffn = {} }\n'
    )
    refuses(1, path .. ":4: attention.rope.theta = 0: must be a number from 1 to 1e12", { "plan", path })
end

-- arXiv 2404.12362, section 4.
function test.plan_prints_the_papers_table()
    for name, expected in pairs {
        pythia_6_9b_skipless = {
            qp = 33554432,
            kv = 33554432,
            ffn = 134217728,
            embeddings = 412876800,
            e = 4096,
            "6.9B",
            "5.8B",
            "16 %",
            "1.19x",
        },
        mistral_7b_skipless = {
            qp = 33554432,
            kv = 8388608,
            ffn = 176160768,
            embeddings = 262144000,
            e = 1024,
            "7.2B",
            "6.2B",
            "15 %",
            "1.17x",
        },
    } do
        local path = "gen/models/" .. name .. ".lua"
        local found, text = json.decode(works { "plan", path, "--json" }), works { "plan", path }
        for key, value in pairs(expected) do
            if type(key) == "string" then check.equal(found.weights[key], value) end
        end
        for _, fragment in ipairs(expected) do
            check.matches(text, "  *" .. fragment:gsub("%p", "%%%0") .. "%f[%s]")
        end
        check.matches(text, "\nQ%+P per layer +33,554,432\n")
        check.equal(found.model, model.load(path))
    end
end

function test.plan_counts_what_is_eliminated()
    local function weights(changes)
        return json.decode(works { "plan", program.model(folder, "m", source(changes)), "--json" }).weights
    end
    local all = weights "t.attention.eliminate = 'none'"
    check.equal(all.total, 2 * (4 * 64 * 64 + 2 * 64 * 256) + 2 * 64 * 100)
    check.equal({ all.total_without, all.savings, all.speedup }, { all.total, 0.0, 1.0 })
    check.equal(weights().total - weights().total_without, 2 * 2 * 64 * 64)
    check.equal(weights "t.attention.eliminate = 'V'".total_without, all.total - 2 * 64 * 64)
    check.equal(
        weights "t.kv_heads = 1 t.ffn.kind = 'glu'".total,
        2 * (2 * 64 * 64 + 2 * 64 * 8 + 3 * 64 * 256) + 2 * 64 * 100
    )
    check.equal(
        weights("t.head_dim = 4 t.kv_heads = 2 t.layers = 1 t.d_in = 20 t.skip = true \z
            t.attention.eliminate = 'none'").total,
        20 * 32 + 2 * 20 * 8 + 32 * 64 + 64 * 20 + 2 * 64 * 256 + 100 * (20 + 64)
    )
    check.equal(
        weights("t.ffn = { kind = 'lookup', h = 8, tau = 4, projection = { kind = 'dense' }, score = 'gelu' } \z
            t.attention.eliminate = 'none' t.ffn.dense = { kind = 'glu', f = 6, activation = 'silu' }").total,
        2 * (4 * 64 * 64 + 8 * 4 * 64 + 8 * 16 * 64 + 3 * 64 * 6) + 2 * 64 * 100
    )
    -- Rows of d + 2e: the tables of the first layer and the input embedding.
    local lookup =
        "t.kv_heads = 2 t.ffn = { kind = 'lookup', h = 8, tau = 4, projection = { kind = 'dense' }, score = 'gelu' } \z
            t.attention.eliminate = 'QKV'"
    check.equal(weights(lookup).total, 2 * (2 * 64 * 64 + 2 * 64 * 16 + 8 * 4 * 64 + 8 * 16 * 64) + 2 * 64 * 100)
    check.equal(
        weights(lookup).total_without - weights(lookup).total,
        8 * 16 * 32 + 100 * 32 - 2 * (64 * 64 + 2 * 64 * 16)
    )
    -- A token takes one row of every table.
    local met = weights(lookup).total - 2 * 8 * 15 * 64
    check.near(weights(lookup).speedup, met / (met - 2 * (64 * 64 + 2 * 64 * 16) + 8 * 32), 1e-12)
end

function test.commands_refuse_options_of_a_lookup_ffn()
    local path = "gen/models/mistral_7b_skipless.lua"
    local o = folder .. "/never"
    refuses(
        2,
        "--html: " .. o .. ".html: is for a LookupFFN or a whole model, not for a transformer",
        { "tune", path, "-o", o .. ".lua", "--html", o .. ".html" }
    )
    refuses(
        2,
        "--threads: 2: is for a LookupFFN or a whole model, not for a transformer",
        { "tune", path, "-o", o .. ".lua", "--threads", "2" }
    )
    refuses(
        2,
        "--batch: 8192: must be at most attention.context = 4096",
        { "tune", path, "-o", o .. ".lua", "--batch", "1,8192" }
    )
    for _, words in ipairs {
        { "tune", path, "-o", o .. ".lua" },
        { "plan", path },
        { "emit", path, "-o", o },
        { "verify", path },
        { "bench", path },
        { "pack", path, "--weights", o, "-o", o },
    } do
        table.move({ "--tables", "i8" }, 1, 2, #words + 1, words)
        refuses(2, "--tables: i8: mistral_7b_skipless has no LookupFFN", words)
    end
    refuses(
        2,
        "--type: i8: is for a transformer or a whole model, not for a LookupFFN",
        { "emit", "gen/models/tiny.lua", "-o", o, "--type", "i8" }
    )
    refuses(
        2,
        '--type: "i5": must be one of ' .. table.concat(dtype.type_names, ", "),
        { "emit", path, "-o", o, "--type", "i5" }
    )
    check.equal(host.kind(o), nil)
    refuses(
        1,
        "gen/models/tiny.lua: attention: required key is missing; only a transformer has weights to fuse",
        { "fuse", "gen/models/tiny.lua", "--weights", o, "-o", o }
    )
end

function test.blocks_that_cannot_be_emitted()
    local o = folder .. "/never"
    local lookup = "t.ffn = { kind = 'lookup', h = 8, tau = 4, projection = { kind = 'dense' }, score = 'gelu' }"
    for _, case in ipairs {
        {
            lookup .. " t.attention.eliminate = 'QKV' t.skip = true",
            'attention.eliminate = "QKV": tables that deliver q, k and v leave nothing to norms and skip connections',
        },
        {
            "t.checkpoint, t.attention = 'gpt2', { context = 8, qk_norm = { eps = 1e-6 } }",
            "attention.qk_norm: gpt2 checkpoints have no such norms",
        },
        {
            "t.checkpoint = 'phi' t.parallel = true t.norm = { kind = 'layernorm' }",
            "norm.shared: must be true: phi checkpoints have one norm a block",
        },
        { "t.checkpoint = 'gpt2' t.ffn.kind = 'glu'", 'ffn.kind = "glu": gpt2 checkpoints have no such FFN' },
        {
            lookup .. " t.checkpoint = 'gpt2' t.ffn.dense = { kind = 'glu', f = 3, activation = 'silu' }",
            'ffn.dense.kind = "glu": gpt2 checkpoints have no such FFN',
        },
    } do
        local file = program.model(folder, "m", source(case[1]))
        refuses(1, case[2], { "emit", file, "-o", o })
        check.matches(works { "plan", file }, "\ncannot be emitted +[^\n]*" .. case[2]:gsub("%p", "%%%0"))
    end
    check.equal(host.kind(o), nil)
end

-- Where the parts of whole models are found, by kind of checkpoint: names, and shapes where they are unusual.
function test.names_of_whole_models()
    local checkpoint = require "gen.schema.checkpoint_names"
    local function whole(kind, output, more)
        local m = {
            checkpoint = kind,
            d = 8,
            heads = 2,
            kv_heads = 2,
            layers = 2,
            vocab = 20,
            positions = kind ~= "llama" and kind ~= "use" and 16 or nil,
            token_types = kind:find "bert" and 2 or nil,
            attention = { eliminate = "none" },
            ffn = { kind = "mlp", f = 12 },
            norm = { kind = "layernorm" },
            embedding = { norm = kind:find "bert" and { kind = "layernorm" } or nil },
            output = output,
        }
        for key, value in pairs(more or {}) do
            m[key] = value
        end
        check.equal(checkpoint.misfit(m), nil)
        local parts, list = checkpoint.output(m, 8), {}
        for _, key in ipairs { "norm", "dense", "dense_norm", "head", "classes" } do
            local part = parts[key]
            local first, second = part and (part.gain or part.weight), part and (part.offset or part.bias)
            list[#list + 1] = part and key .. " " .. first.tensor .. " " .. second.tensor or nil
        end
        return list, checkpoint.embeddings(m, 8, 8), m
    end
    local norm = { kind = "layernorm" }
    local lm = { dense = { width = 8, norm = norm }, head = { bias = true } }
    local list, embeddings = whole("bert", lm)
    check.equal(list, {
        "dense cls.predictions.transform.dense.weight cls.predictions.transform.dense.bias",
        "dense_norm cls.predictions.transform.LayerNorm.weight cls.predictions.transform.LayerNorm.bias",
        "head cls.predictions.decoder.weight cls.predictions.bias",
    })
    check.equal(embeddings.norm.gain.tensor, "bert.embeddings.LayerNorm.weight")
    check.equal(embeddings.token_types.shape, { 2, 8 })
    check.equal(whole("bert", { pool = "first", dense = { width = 8 }, classes = 3 }), {
        "dense bert.pooler.dense.weight bert.pooler.dense.bias",
        "classes classifier.weight classifier.bias",
    })
    check.equal(whole("roberta", { pool = "first", dense = { width = 8 }, classes = 3 }), {
        "dense classifier.dense.weight classifier.dense.bias",
        "classes classifier.out_proj.weight classifier.out_proj.bias",
    })
    check.equal(whole("roberta", { classes = 3 }), { "classes classifier.weight classifier.bias" })
    check.equal(whole("roberta", { pool = "first", dense = { width = 8 } }), {
        "dense roberta.pooler.dense.weight roberta.pooler.dense.bias",
    })
    lm.norm = norm
    check.equal(whole("lookupffn", lm, { embedding = {} }), {
        "norm roberta.encoder.LayerNorm.weight roberta.encoder.LayerNorm.bias",
        "dense lm_head.dense.weight lm_head.dense.bias",
        "dense_norm lm_head.layer_norm.weight lm_head.layer_norm.bias",
        "head lm_head.decoder.weight lm_head.bias",
    })
    local plain = { norm = norm, head = {} }
    check.equal(whole("gpt2", plain, { tied = true }), {
        "norm transformer.ln_f.weight transformer.ln_f.bias",
        "head transformer.wte.weight lm_head.bias",
    })
    check.equal(whole("mingpt", plain)[2], "head lm_head.weight lm_head.bias")
    check.equal(whole("llama", plain), {
        "norm model.norm.weight model.norm.bias",
        "head lm_head.weight lm_head.bias",
    })
    local _, _, use = whole("use", { pool = "mean", dense = { width = 8 } })
    local query, skip = checkpoint.linear(use, 1, "Q", 8, 4), checkpoint.linear(use, 0, "S", 8, 4)
    check.equal(query.weight.shape, { 1, 1, 4, 24 })
    check.equal({ query.weight.transposed, query.weight.group, query.bias.group }, { true, 8, 8 })
    check.matches(skip.weight.tensor, "/Layer_0/TransformerLayer/dense/kernel/")
    check.equal(skip.weight.shape, { 4, 8 })
    check.equal(checkpoint.output(use, 8).dense.weight.transposed, true)

    -- What a kind has no tensors for.
    for _, case in ipairs {
        { "llama", "output.dense", { dense = { width = 8 } } },
        { "roberta", "output.norm", { norm = norm } },
        { "gpt2", "output.dense", { pool = "last", dense = { width = 8 } } },
        { "use", "output.head", { head = {} } },
        { "roberta", "output.dense.norm", { pool = "first", dense = { width = 8, norm = norm } } },
    } do
        local m = select(3, whole(case[1], {}))
        m.output = case[3]
        check.equal(table.concat(checkpoint.misfit(m), "."), case[2])
    end
end

return test
