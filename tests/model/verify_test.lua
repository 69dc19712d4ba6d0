-- verify checks whole models in every way that they are called, and finds templates that are wrong.
local check = require "tests.support.check"
local checkpoints = require "tests.support.checkpoints"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local program = require "tests.support.program"
local sets = require "tests.support.sets"

local test = {}
local folder = program.folder()

local function model(name, text)
    return program.model(folder, name, "return { name = '" .. name .. "', skip = true, " .. text .. " }")
end

local decoder = model(
    "decoder",
    "d = 24, heads = 3, layers = 2, vocab = 37, positions = 21, tied = true, norm = { kind = 'layernorm' }, \z
        attention = { context = 20 }, ffn = { kind = 'mlp', f = 40, activation = 'gelu' }, embedding = { \z
        first_position = 1 }, output = { norm = { kind = 'layernorm' }, head = { soft_cap = 5 } }, checkpoint = 'gpt2'"
)
local encoder = model(
    "encoder",
    "d = 24, heads = 3, layers = { { d_in = 16, head_dim = 6 }, {} }, vocab = 37, norm = { kind = 'rmsnorm', place = \z
        'post' }, attention = { context = 40, causal = false }, ffn = { kind = 'lookup', h = 6, tau = 4, projection = \z
        { kind = 'dense' }, score = 'gelu' }, embedding = { d = 10, scale = 3, sinusoidal = {}, norm = { kind = \z
        'layernorm' } }, output = { pool = 'mean', dense = { width = 30, activation = 'tanh' }, unit = true }, \z
        checkpoint = 'roberta'"
)

local bh4 = model(
    "bh4",
    "d = 24, heads = 3, layers = 2, vocab = 37, positions = 20, norm = { kind = 'layernorm' }, attention = { context \z
        = 20 }, ffn = { kind = 'lookup', h = 6, tau = 4, projection = { kind = 'bh4', block = 8 }, score = 'gelu', \z
        neighbours = 2 }, embedding = {}, output = { norm = { kind = 'layernorm' }, head = {} }, checkpoint = 'mingpt'"
)
local one_token = model(
    "one_token",
    "d = 16, heads = 2, layers = 1, vocab = 40, positions = 1, norm = { kind = 'layernorm' }, attention = { context = \z
        1, causal = false }, ffn = { kind = 'mlp', f = 32, activation = 'gelu' }, embedding = {}, output = { pool = \z
        'mean' }, checkpoint = 'bert'"
)

local means = model(
    "means",
    "d = 24, heads = 3, layers = 1, vocab = 37, norm = { kind = 'layernorm' }, attention = { context = 70, causal = \z
        false }, ffn = { kind = 'mlp', f = 40, activation = 'gelu' }, embedding = {}, output = { pool = 'sqrt_n' }, \z
        checkpoint = 'roberta'"
)

-- The calls that verify reports of a model, each on every one of the instruction sets.
local function verified(path, ...)
    local words = { "verify", path, "--cflags", "-O0", "--json", "--isa", sets.in_turn() }
    local found, calls = json.decode(program.works(program.with(words, ...))), {}
    check.equal(found.ok, true)
    for i, result in ipairs(found.results) do
        assert(result.rel_err > 0 and result.rel_err <= 1e-3, result.call)
        calls[i] = result.call
    end
    return table.concat(calls, " ")
end

function test.every_call_of_a_decoder_is_checked()
    check.matches(verified(decoder), "^step prefill prefill_all mixed")
    -- Widths are no whole groups; the embedding is read in columns.
    verified(decoder, "--type", "i4")
    verified(decoder, "--type", "i4", "--activations", "i8")
    verified(decoder, "--type", "q8", "--activations", "i8")
    if effort.full "transformers" then verified(decoder, "--type", "i8", "--cache", "f16") end
end

-- A head and an embedding that are not tied are in types of their own, which bytes and results show.
function test.parts_have_types_of_their_own()
    local output = "output = { head = {} }, embedding = {}, positions = 20, checkpoint = 'gpt2', \z
        attention = { context = 20 }"
    -- Without a norm bytes of inputs would be half-way between two: of rows in i4 they are few fractions.
    local own = "d = 24, heads = 3, layers = 1, vocab = 37, norm = { kind = 'layernorm' }, \z
        ffn = { kind = 'mlp', f = 40, activation = 'silu' }, "
    local path, bytes = model("parts", own .. output), {}
    verified(path, "--type", "u4,head=i8,embedding=i4", "--activations", "i8")
    verified(path, "--type", "i8,head=i4,embedding=u4")
    for i, types in ipairs { "i4,head=i8,embedding=i4", "i8,blocks=i4,embedding=i4" } do
        local found = json.decode(program.works { "plan", path, "--type", types, "--json" })
        bytes[i] = {}
        for _, part in ipairs(found.flash.parts) do
            bytes[i][part.name] = part.bytes
        end
    end
    check.equal(bytes[1], bytes[2])
    check.equal(bytes[1].embedding, 19 * 36 + 20 * 24 * 4) -- pairs of rows of one group, and positions
    for types, line in pairs {
        ["i4,hed=i8"] = '"i4,hed=i8": "hed": must be one of blocks, head, embedding',
        ["i4,i8"] = '"i4,i8": must be one of f32, ',
        ["head=i8,i4"] = '"head=i8,i4": "i4": must be PART=TYPE, or stand first alone',
        ["i4,head=i8,head=i8"] = '"i4,head=i8,head=i8": head: given twice',
        ["i4,head=i9"] = '"i9": must be one of f32, ',
        ["i4,embedding=i8"] = "embedding=i8: must be i4, as the head, which decoder's embedding is",
    } do
        program.refuses(2, "--type: " .. line, { "plan", decoder, "--type", types })
    end
    local alone = { "plan", "gen/models/tiny_skipless.lua", "--type", "i4,head=i8" }
    program.refuses(2, "--type: head=i8: tiny_skipless has blocks alone", alone)
    local headless = { "plan", means, "--type", "i4,head=i8" }
    program.refuses(2, "--type: head=i8: means has no head and no other map", headless)
    -- What its manifest would record of a head it does not take.
    check.matches(program.works { "plan", means, "--type", "blocks=i4" }, " of i4,embedding=f32\n")
    local mixed = { "plan", path, "--type", "i4,head=bf16", "--activations", "i8" }
    program.refuses(2, '--activations: "i8": needs --type i8 or i4 or u4 or q8, not bf16', mixed)
end

-- Its rounding of inputs is that of the kernels: results differ by rounding of floats, not by that of integers.
function test.tables_and_projections_have_types_of_their_own()
    local list = {
        { bh4, "--tables", "i8", "--projection", "i8" },
        { encoder, "--tables", "e4m3", "--projection", "bf16" },
        { encoder, "--projection", "i8", "--type", "i8" },
        { bh4, "--projection", "i16", "--type", "bf16" },
    }
    for i = 1, effort.full "lookups" and #list or 1 do
        local words = { "verify", "--cflags", "-O0", "--json", "--isa", sets.in_turn() }
        local found = json.decode(program.works(table.move(list[i], 1, #list[i], #words + 1, words)))
        for _, result in ipairs(found.results) do
            check.equal({ result.ok, result.rel_err < 1e-4 }, { true, true }) -- sums of integers round scores
        end
    end
    program.refuses(2, "--tables: i8: decoder has no LookupFFN", { "verify", decoder, "--tables", "i8" })
end

-- Steps are projected by BH4, a prefill by the dense matrix: each is judged by what it looked up itself.
function test.every_call_is_judged_by_its_own_form_of_a_projection()
    verified(bh4, "--projection", "i8", "--multiply-out", "--schedule", "project.dense=1")
end

function test.every_call_of_an_encoder_is_checked()
    check.matches(verified(encoder), "^encode batch")
    if effort.full "transformers" then verified(encoder, "--type", "bf16") end
    if effort.full "transformers" then verified(encoder, "--type", "i4") end
    check.matches(verified(one_token), "^encode batch")
end

-- Sequences beside each other: the last token of one has no place for its key.
function test.shifted_keys_of_an_encoder()
    local path = model(
        "shifted",
        "d = 16, heads = 4, layers = 1, vocab = 50, attention = { context = 64, causal = false, shifted = 3 }, \z
            ffn = { kind = 'mlp', f = 30, activation = 'relu' }, embedding = {}, output = { pool = 'mean' }"
    )
    check.matches(verified(path), "^encode batch")
end

-- All layers of the second run are rings, beyond whose positions a sequence goes on.
function test.shifted_keys_of_a_run_of_rings_among_others()
    local path = model(
        "shifted_rings",
        "d = 16, heads = 2, layers = { {}, { ffn = { kind = 'mlp', f = 9, activation = 'relu' } } }, vocab = 20, \z
            attention = { context = 130, window = 5, full_layers = { 0 }, shifted = 1 }, \z
            ffn = { kind = 'mlp', f = 8, activation = 'relu' }, embedding = {}, output = { head = {} }"
    )
    verified(path)
end

-- Models to which float32, or the type of the cache, does more than to others: what was said of them was wrong.
local delicate = {
    { -- amplifies rounding: no norms, three blocks
        "return { attention = { causal = true, context = 104, eliminate = 'Q', shaped = true }, checkpoint = \z
            'llama', d = 40, embedding = { scale = 1.5 }, ffn = { h = 12, kind = 'lookup', neighbours = 8, \z
            projection = { kind = 'dense' }, scale = '1/h', score = 'gelu', tau = 5 }, heads = 2, kv_heads = 1, \z
            layers = 3, name = 'm', output = { classes = 70, norm = { eps = 1e-05, kind = 'rmsnorm' } }, \z
            parallel = false, skip = false, vocab = 33 }",
        { "--type", "bf16", "--seed", "118" },
    },
    { -- a key half-way between two numbers of f16 decides a bit of a hash
        "return { attention = { causal = true, context = 91, eliminate = 'none', scale = 0.25, window = 17 }, \z
            checkpoint = 'roberta', d = 100, embedding = { first_position = 3 }, ffn = { h = 11, kind = \z
            'lookup', projection = { kind = 'dense' }, scale = '1/h', score = 'one', tau = 6 }, head_dim = 14, \z
            heads = 5, kv_heads = 5, layers = 3, name = 'm', output = { head = { soft_cap = 4 } }, parallel = \z
            false, positions = 94, skip = false, vocab = 25 }",
        { "--type", "f16", "--cache", "f16", "--seed", "2" },
    },
    { -- a row whose activation ends where float32 does
        "return { attention = { causal = true, context = 22, eliminate = 'Q' }, checkpoint = 'lookupffn', d = \z
            12, embedding = { d = 1 }, ffn = { h = 1, kind = 'lookup', projection = { block = 2, kind = 'bh4' }, \z
            scale = '1/h', score = 'softmax', tau = 3 }, heads = 4, kv_heads = 1, layers = 2, name = 'm', output \z
            = { dense = { activation = 'gelu_tanh', width = 1 } }, parallel = false, skip = true, token_types = \z
            2, vocab = 58 }",
        { "--type", "i8", "--activations", "i8", "--seed", "342" },
    },
}

function test.what_float32_moves_is_no_error()
    for i, row in ipairs(delicate) do
        local path = program.model(folder, "delicate" .. i, row[1])
        local words = { "verify", path, "--cflags", "-O0", "--json", "--isa", "scalar" }
        table.move(row[2], 1, #row[2], #words + 1, words)
        local found = json.decode(program.works(words))
        check.equal(found.ok, true)
        for _, result in ipairs(found.results) do
            local most = math.max(1e-5, 32 * (result.float32_err or 0))
            assert(i > 1 or result.rel_err <= most and result.rel_err < 1e-4, result.call)
        end
    end
end

-- Samples weights of a model, with values times `factor`.
local function with_large_values(path, factor)
    local weights = folder .. "/large.safetensors"
    program.works { "sample", path, "--seed", "3", "-o", weights }
    program.python(
        [=[
tensors = load(sys.argv[1])
for name in tensors:
    if name.endswith(("v_proj.weight", "linear_v.weight")):
        tensors[name][1][:] *= float(sys.argv[2])
save(sys.argv[1], tensors)
]=],
        weights,
        factor
    )
    return { "--weights", weights, "--cache", "f16", "--isa", "scalar", "--cflags", "-O0" }
end

-- Values that half precision does not hold, of a whole model and of blocks alone: commands say so, once, and only then.
function test.what_the_cache_cannot_hold_is_said()
    local shape = "d = 16, heads = 2, layers = 1, vocab = 256, norm = { kind = 'rmsnorm' }, "
        .. "attention = { context = 32 }, ffn = { kind = 'mlp', f = 16, activation = 'silu' }"
    local whole = model("large", shape .. ", embedding = {}, output = { head = {} }, checkpoint = 'llama'")
    local blocks = model("large_blocks", shape)
    local ids, y, x = folder .. "/ids.txt", folder .. "/y.npy", folder .. "/x.npy"
    assert(host.write_file(ids, "1 2 3 4 5 6"))
    program.python("np.save(sys.argv[1], np.random.default_rng(1).standard_normal((6, 16)).astype('f4'))", x)
    local function told(times, options, ...)
        local result = program.run(program.with({ ... }, table.unpack(options)))
        check.equal(result.status, 0)
        local _, count = result.errors:gsub("warning: %d+ cached numbers are beyond half precision [^\n]*f32", "")
        if count ~= times then error(table.concat({ ... }, " ") .. ": " .. result.errors) end
    end
    told(0, with_large_values(whole, "1"), "run", whole, "--ids", ids, "--output", y)
    local options = with_large_values(whole, "1e6")
    told(1, options, "run", whole, "--ids", ids, "--output", y, "--decode")
    told(1, options, "generate", whole, "--ids", "1,2,3", "--tokens", "3")
    told(1, options, "perplexity", whole, "--ids", ids, "--context", "4")
    local result = program.run(program.with({ "verify", whole }, table.unpack(options)))
    check.equal(result.status, 1)
    check.matches(result.errors, "relative error [^\n]*; %d+ cached numbers are beyond half precision")
    told(1, with_large_values(blocks, "1e6"), "run", blocks, "--input", x, "--output", y)
end

function test.wrong_templates_are_found()
    local cases = {
        { "templates/model/embed.c", '"(position + token)"', '"(position + token + 1)"', decoder, "relative error" },
        {
            "templates/model/pool.c",
            "double factor = 1.0 / (double) tokens",
            "double factor = 2.0 / (double) tokens / tokens",
            encoder,
            "relative error",
        },
        {
            "templates/model/results.c",
            'pool(x + $(times("(offsets[own] - offsets[0])"',
            'pool(x + $(times("offsets[own]"',
            encoder,
            "batch: ",
        },
        -- Sums of a sequence in two parts of a call, and in rows of its own.
        { "templates/model/results.c", "(at + count - 1) / $(sums_tokens)", "at / $(sums_tokens)", means, "batch: " },
        { "templates/model/results.c", "own + at / $(sums_tokens)", "at / $(sums_tokens)", means, "batch: " },
        { "templates/model/results.c", "root * (", "0.99f * root * (", means, "relative error" },
        { "templates/math/tanh.c", "-3.33332819422e-1f", "-3.34332819422e-1f", encoder, "relative error" },
        { "templates/model/calls.c", "ids[i] < 0 || ", "", decoder, "signal 11" },
        {
            "templates/model/calls.c",
            "first > $(context) - n",
            "first > $(context) + 0 * n",
            decoder,
            "does not refuse",
        },
        {
            "templates/model/calls.c",
            "(uint32_t) (first + n)",
            "(uint32_t) (first + n + (n == 1))",
            decoder,
            "does not refuse",
        },
    }
    for _, case in ipairs(cases) do
        program.changed(case[1], case[2], case[3])
    end
    for _, case in ipairs(effort.some("planted", cases, 3)) do
        local tree = program.changed_tree(case[1], case[2], case[3])
        local words = { "--tree", tree, "verify", case[4], "--isa", "scalar", "--cflags", "-O0" }
        local result = program.run(words)
        check.equal({ case[3], result.status }, { case[3], 1 })
        check.matches(result.errors, case[5])
    end
end

-- A softmax of nothing but -infinity is NaN: later tokens, whose scores are masked, do not take their place. Some tiles
-- are in front of a window.
function test.rows_whose_scores_are_all_minus_infinity_are_nan()
    local text = "d = 16, heads = 2, layers = 1, vocab = 30, attention = { context = 90, %s }, embedding = {}, \z
        ffn = { kind = 'mlp', f = 16, activation = 'relu' }, output = { head = {} }"
    local from, y = checkpoints.path_of "overflow.safetensors", folder .. "/overflow.npy"
    assert(host.write_file(folder .. "/overflow.txt", ("5 9 2 7 "):rep(20)))
    local vectors = sets.here()[#sets.here()]
    for _, case in ipairs {
        { "window = 3", "scalar", "f32" },
        { "window = 3", vectors, "i8" },
        { "window = 3, causal = false", vectors, "f32" },
        { "causal = false", vectors, "i8" },
    } do
        local attention, set, cache = table.unpack(case)
        local path = model("overflow", text:format(attention))
        program.works { "sample", path, "-o", from }
        local changed = checkpoints.with(from, { "model.embed_tokens.weight" }, { 30, 16 })
        for name, value in pairs { q_proj = -1e20, k_proj = 1e20 } do
            local tensor = { "model.layers.0.self_attn." .. name .. ".weight" }
            changed = checkpoints.with(changed, tensor, { 16, 16 }, nil, value)
        end
        local words = { "run", path, "--weights", changed, "--ids", folder .. "/overflow.txt", "--cflags", "-O0" }
        program.works(program.with(words, "--isa", set, "--cache", cache, "--output", y))
        program.python("assert np.isnan(np.load(sys.argv[1])).all()", y)
    end
end

return test
