-- verify checks blocks of every kind on every instruction set, and finds templates that are wrong.
local check = require "tests.support.check"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local program = require "tests.support.program"
local sets = require "tests.support.sets"

local test = {}
local folder = program.folder()

local function model(name, text)
    local layers = text:find "%f[%w_]layers = " and "" or "layers = 2, "
    return program.model(folder, name, "return { name = '" .. name .. "', " .. layers .. "vocab = 30, " .. text .. " }")
end

-- Relative errors that are expected at most, by the cache's type: of the kernels, and beside the unfused weights.
local budget = { f32 = { 1e-5, 1e-5 }, f16 = { 1e-3, 2e-3 }, i8 = { 3e-2, 6e-2 } }

-- The models that quick verifies, one or two of each group below.
local core = {}
local words = "fig4a post narrow_heads ring_of_bytes keys_in_bytes shaped looked_ring cached_f16_3 \z
    typed_u4 merged encoded tables_i8"
for name in words:gmatch "%S+" do
    core[name] = true
end

-- What verify finds of a model: all calls are as near to the reference as the cache's type allows, and merged f32
-- weights to the unfused ones. Nothing where quick leaves it out.
local function verified(name, text, ...)
    if not core[name] and not effort.full "transformers" then return { results = {} } end
    local path = model(name, text)
    local words = { "verify", path, "--cflags", "-O0", "--json", "--isa", sets.in_turn() }
    local found = json.decode(program.works(program.with(words, ...)))
    check.equal(found.ok, true)
    assert(#found.results > 0)
    for _, result in ipairs(found.results) do
        local kernel, all = table.unpack(budget[result.cache])
        assert(result.kernel_rel_err > 0 and result.kernel_rel_err <= kernel, name)
        if result.rel_err and result.type == "f32" then assert(result.rel_err > 0 and result.rel_err <= all, name) end
    end
    return found
end

function test.norms_and_skip_connections()
    verified(
        "fig4a",
        "d = 40, heads = 4, kv_heads = 2, skip = true, norm = { kind = 'rmsnorm' }, attention = { eliminate = 'QP', \z
            rope = {}, context = 40 }, ffn = { kind = 'glu', f = 33, activation = 'silu' }"
    )
    verified(
        "fig4b",
        "d = 32, heads = 2, parallel = true, skip = true, norm = { kind = 'layernorm' }, checkpoint = 'gpt_neox', \z
            attention = { eliminate = 'QP', rope = {}, context = 40 }, ffn = { kind = 'mlp', f = 40, activation = \z
            'gelu_tanh' }"
    )
    verified(
        "post",
        "d = 32, heads = 2, skip = true, norm = { kind = 'layernorm', place = 'post' }, checkpoint = 'roberta', \z
            positions = 60, token_types = 1, attention = { causal = false, context = 58 }, ffn = { kind = 'mlp', f = \z
            64, activation = 'gelu' }"
    )
end

-- Values made of keys: heads of whole panels and not, caches of all types, rings, and what else is merged.
function test.caches_of_keys()
    local function keys(name, text, ...)
        verified(name, text:gsub("attention = {", "attention = { cache = 'k',"), ...)
    end
    keys(
        "keys",
        "d = 64, heads = 2, skip = true, norm = { kind = 'rmsnorm' }, attention = { rope = {}, context = 70 }, \z
            ffn = { kind = 'glu', f = 33, activation = 'silu' }"
    )
    keys(
        "keys_of_narrow_heads",
        "d = 60, heads = 5, attention = { eliminate = 'QP', soft_cap = 9, window = 30, full_layers = { 1 }, \z
            context = 140 }, ffn = { kind = 'mlp', f = 40, activation = 'gelu' }",
        "--cache",
        "i8"
    )
    keys(
        "keys_rotated_in_windows_of_some_layers",
        "d = 64, heads = 2, attention = { window = 16, full_layers = { 1 }, rope = {}, context = 70 }, \z
            ffn = { kind = 'mlp', f = 40, activation = 'gelu' }"
    )
    keys(
        "ring_of_keys",
        "d = 24, heads = 3, parallel = true, checkpoint = 'gpt_neox', attention = { eliminate = 'K', window = 9, \z
            rope = { share = 0.5 }, context = 70 }, ffn = { kind = 'mlp', f = 40, activation = 'relu' }",
        "--cache",
        "f16"
    )
    keys(
        "keys_in_bytes",
        "d = 48, heads = 3, skip = true, norm = { kind = 'layernorm' }, checkpoint = 'gpt2', positions = 70, \z
            attention = { context = 70 }, ffn = { kind = 'mlp', f = 40, activation = 'gelu' }",
        "--type",
        "i8",
        "--activations",
        "i8"
    )
end

function test.widths_of_heads_and_inputs()
    verified(
        "narrow_heads",
        "d = 40, heads = 3, head_dim = 6, kv_heads = 1, skip = true, norm = { kind = 'rmsnorm' }, \z
            attention = { rope = {}, window = 9, context = 40 }, \z
            ffn = { kind = 'glu', f = 33, activation = 'gelu_tanh' }",
        "--cache",
        "i8"
    )
    local function widened(name, more)
        verified(
            name,
            "layers = 1, d = 48, d_in = 20, heads = 2, head_dim = 10, skip = true, checkpoint = 'roberta', " .. more
        )
    end
    local attention = " attention = { causal = false, context = 60 },"
    widened(
        "widened",
        "norm = { kind = 'layernorm', eps = 1e-6 },"
            .. attention
            .. "ffn = { kind = 'mlp', f = 50, activation = 'relu' }"
    )
    widened(
        "widened_post",
        "norm = { kind = 'layernorm', place = 'post' },"
            .. attention
            .. "ffn = { kind = 'lookup', h = 7, tau = 5, projection = { kind = 'dense' }, score = 'gelu' }"
    )
end

function test.windows_and_rotations()
    local found = verified(
        "window",
        "d = 40, heads = 5, attention = { eliminate = 'KP', rope = { share = 0.5, pairs = 'interleaved' }, window = \z
            37, context = 230 }, ffn = { kind = 'mlp', f = 50, activation = 'relu' }"
    )
    -- tokens behind the context and the ring
    if found.ok then check.equal({ found.results[1].tokens, found.results[4].call }, { 389, "far" }) end
    verified(
        "narrow",
        "d = 12, heads = 6, kv_heads = 1, attention = { eliminate = 'QP', window = 1, context = 70, scale = 1 }, ffn \z
            = { kind = 'glu', f = 7, activation = 'gelu' }"
    )
    verified( -- whose rounding depends on positions, which nothing else does
        "ring_of_bytes",
        "d = 40, heads = 4, skip = true, attention = { window = 33, context = 300 }, ffn = { kind = 'glu', f = 50, \z
            activation = 'silu' }",
        "--type",
        "i8",
        "--activations",
        "i8"
    )
end

function test.windows_to_both_sides()
    verified(
        "near",
        "d = 32, heads = 4, kv_heads = 2, attention = { eliminate = 'QP', rope = {}, causal = false, window = 41, \z
            context = 200 }, ffn = { kind = 'mlp', f = 64, activation = 'gelu' }"
    )
    verified(
        "alone",
        "d = 32, heads = 2, attention = { causal = false, window = 1, context = 40 }, ffn = { kind = 'mlp', f = 64, \z
            activation = 'gelu' }"
    )
end

-- Also beside the weights before they are merged.
function test.shaped_attention()
    verified(
        "shaped",
        "d = 40, heads = 5, kv_heads = 1, attention = { eliminate = 'QP', shaped = true, rope = {}, context = 100 }, \z
            ffn = { kind = 'mlp', f = 50, activation = 'relu' }"
    )
    verified(
        "shaped_parallel",
        "d = 24, heads = 3, parallel = true, attention = { eliminate = 'Q', shaped = true, causal = false, \z
            context = 70 }, ffn = { kind = 'glu', f = 30, activation = 'silu' }"
    )
end

-- A ring, whose tokens enter it just before they attend, with groups of heads of unit length; and shaped attention,
-- which alone reads weights behind the lookup.
function test.q_k_and_v_out_of_tables()
    local ffn = "parallel = true, skip = true, ffn = { kind = 'lookup', qkv = true, h = 7, tau = 4 }, "
    verified(
        "looked_ring",
        ffn .. "d = 48, heads = 6, kv_heads = 2, norm = { kind = 'rmsnorm' }, attention = { window = 9, context = 64, \z
            rope = {}, unit = true, shifted = 1 }"
    )
    local shaped = "d = 40, heads = 2, attention = { causal = false, shaped = true, context = 40 }"
    verified("looked", ffn .. shaped, "--type", "i8")
end

-- Rounding costs something, so it happens; a ring and what has no window differ in where scales lie.
function test.types_of_the_cache()
    for _, cache in ipairs { "f16", "i8" } do
        for number, attention in ipairs {
            "rope = {}, window = 50, context = 64", -- a ring
            "context = 100",
            "causal = false, context = 90",
        } do
            local found = verified(
                "cached_" .. cache .. "_" .. number,
                "d = 60, heads = 6, kv_heads = 3, attention = { eliminate = 'QP', "
                    .. attention
                    .. " }, ffn = { kind = 'glu', f = 70, activation = 'silu' }",
                "--cache",
                cache
            )
            for _, result in ipairs(found.results) do
                assert(result.cache == cache and result.rel_err > 1e-4, attention)
            end
        end
    end
end

-- Products of rounded inputs are exact, and results as near as rounding allows: widths that fill no word, tokens that
-- fill no register, post-norm and gated blocks, a ring, tables. Keys and values are of the same type, unless an option
-- says otherwise or attention is shaped.
function test.rounded_activations()
    local models = {
        rounded = "d = 36, heads = 3, kv_heads = 1, head_dim = 10, skip = true, norm = { kind = 'rmsnorm' }, \z
            attention = { rope = {}, window = 9, context = 40 }, ffn = { kind = 'glu', f = 33, activation = 'silu' }",
        rounded_post = "d = 32, heads = 2, skip = true, norm = { kind = 'layernorm', place = 'post' }, checkpoint = \z
            'roberta', positions = 60, token_types = 1, attention = { causal = false, context = 58 }, ffn = { kind = \z
            'mlp', f = 65, activation = 'gelu' }",
        rounded_lookup = "d = 32, heads = 2, skip = true, norm = { kind = 'layernorm' }, attention = { context = \z
            30 }, ffn = { kind = 'lookup', h = 8, tau = 4, projection = { kind = 'dense' }, score = 'gelu' }",
        rounded_shaped = "d = 24, heads = 2, attention = { context = 40, shaped = true }, ffn = { kind = 'mlp', f = \z
            30, activation = 'gelu' }",
    }
    local names = { "rounded", "rounded_post", "rounded_lookup", "rounded_shaped" }
    for _, name in ipairs(effort.some("transformers", names, 1)) do
        local text = models[name]
        local path = model(name, text)
        local function verify(type, set, cache, weights)
            local words = { "verify", path, "--cflags", "-O0", "--json", "--type", weights or type, "--isa", set }
            words[#words + 1], words[#words + 2] = "--activations", type
            if cache then
                words[#words + 1], words[#words + 2] = "--cache", cache
            end
            cache = cache or name == "rounded_shaped" and "f32" or type
            for _, result in ipairs(json.decode(program.works(words)).results) do
                check.equal({ result.ok, result.activations, result.cache }, { true, type, cache })
                assert(result.activations_err > 1e-4 and result.activations_err < 0.5, name)
                assert(result.kernel_rel_err <= 2 * result.activations_err, name)
            end
        end
        verify("i8", sets.in_turn())
        verify("i7", sets.in_turn(), nil, "i8")
        verify("bf16", sets.in_turn "bf16_products")
        if name == "rounded" then verify("i8", sets.in_turn(), "f32") end
    end
end

-- With this seed one of the first tokens has an input half-way between two numbers of bf16, and all others attend to
-- it: all values are off together by more than rounding explains. Other inputs show that it is no error.
function test.a_tie_of_an_early_token_is_no_error()
    local text = "d = 40, heads = 5, kv_heads = 1, attention = { eliminate = 'QP', window = 45, context = 64, \z
        rope = { share = 0.5 } }, ffn = { kind = 'mlp', f = 66, activation = 'relu' }"
    local words = { "verify", model("m", text), "--schedule", "chunk.tokens=12", "--isa", "scalar", "--seed", "1" }
    for _, option in ipairs { "--type", "--activations", "--cache" } do
        words[#words + 1], words[#words + 2] = option, "bf16"
    end
    program.works(words)
end

function test.activations_are_rounded_only_where_kernels_can()
    local blocks, whole = "gen/models/tiny_skipless.lua", "gen/models/gpt_nano_sort.lua --profile firmware"
    for options, message in pairs {
        [blocks .. " --activations i8"] = '--activations: "i8": needs --type i8 or i4 or u4 or q8, not f32',
        [blocks .. " --type bf16 --activations i8"] = '--activations: "i8": \z
            needs --type i8 or i4 or u4 or q8, not bf16',
        [blocks .. " --type i8 --activations f16"] = '--activations: "f16": must be one of f32, bf16, i8, i7',
        [blocks .. " --activations i7"] = '--activations: "i7": needs --type i8, not f32',
        [blocks .. " --type i8 --activations i8 --cache i7"] = '--cache: "i7": needs --activations i7',
        [blocks .. " --type i7"] = '--type: "i7": must be one of f32, bf16, f16, i8, e4m3, i4, u4, q8',
        [blocks .. " --cache bf16"] = '--cache: "bf16": needs --activations bf16',
        [blocks .. " --activations bf16"] = '--activations: "bf16": needs --type bf16, not f32',
        ["gen/models/tiny.lua --activations i8"] = "--activations: i8: \z
            is for a transformer or a whole model, not for a LookupFFN",
        [whole .. " --type i8 --activations i8 --target generic --weights w"] = '--activations: "i8": not for \z
            firmware, which multiplies floats',
    } do
        local words = { "emit" }
        for word in options:gmatch "%S+" do
            words[#words + 1] = word
        end
        words[#words + 1], words[#words + 2] = "-o", folder .. "/refused"
        local result = program.run(words)
        check.equal({ result.status, result.errors }, { 2, "lookupc: " .. message .. "\n" })
        check.equal(host.files(folder .. "/refused"), nil)
    end
end

-- Bytes of cache and scratch as headers state them.
local function macros(path, ...)
    local folder_of_bundle = program.folder()
    program.works { "emit", path, "-o", folder_of_bundle, "--isa", "scalar", ... }
    local name = path:match "([%w_]+)%.lua$"
    local list, header = {}, assert(host.read(folder_of_bundle .. "/" .. name .. ".h"))
    for word, value in header:gmatch("#define " .. name:upper() .. "_([%u_]+) (%d+)") do
        list[word] = math.tointeger(tonumber(value))
    end
    return list
end

function test.bytes_of_cache_and_scratch()
    local rest = " }, d = 64, heads = 4, kv_heads = 2, ffn = { kind = 'mlp', f = 64, activation = 'relu' }"
    local whole = macros(model("whole", "attention = { context = 4096" .. rest))
    check.equal(whole.CACHE_BYTES, 2 * 2 * 4096 * 2 * 16 * 4)
    check.equal(
        macros(model("whole", "attention = { context = 4096" .. rest), "--cache", "f16").CACHE_BYTES,
        whole.CACHE_BYTES // 2
    )
    check.equal(
        macros(model("whole", "attention = { context = 4096" .. rest), "--cache", "i8").CACHE_BYTES,
        whole.CACHE_BYTES // 4 + 2 * 2 * 4096 * 2 * 4
    )
    local ring = macros(model("ring", "attention = { context = 4096, window = 256" .. rest))
    check.equal({ ring.CACHE_BYTES, ring.WINDOW, ring.CONTEXT }, { 2 * 2 * 288 * 2 * 16 * 4, 256, 1 << 31 })
    assert(whole.DECODE_SCRATCH_BYTES * 50 < whole.SCRATCH_BYTES)
    local all = macros(model("all", "attention = { causal = false, context = 4096" .. rest))
    check.equal(all.DECODE_SCRATCH_BYTES, nil)
    program.refuses(
        2,
        '--cache: "e4m3": must be one of ' .. table.concat(dtype.cache_names, ", "),
        { "emit", folder .. "/whole.lua", "-o", folder .. "/never", "--cache", "e4m3" }
    )
    program.refuses(
        2,
        "--cache: f16: is for a transformer or a whole model, not for a LookupFFN",
        { "emit", "gen/models/tiny.lua", "-o", folder .. "/never", "--cache", "f16" }
    )
end

function test.types()
    for _, type in ipairs { table.unpack(dtype.type_names, 2) } do
        local found = verified(
            "typed_" .. type,
            "d = 48, heads = 4, kv_heads = 2, attention = { eliminate = 'QP', rope = {}, context = 40 }, ffn = { kind \z
                = 'glu', f = 70, activation = 'silu' }",
            "--type",
            type
        )
        local most = (type == "i4" or type == "u4") and 1.5 or 0.5 -- their units are 16 times those of i8
        for _, result in ipairs(found.results) do
            assert(result.rel_err > 1e-4 and result.rel_err < most, type)
        end
    end
end

local dense, bh4 = "projection = { kind = 'dense' }", "projection = { kind = 'bh4', block = 8 }"
local function lookup(more) return "ffn = { kind = 'lookup', h = 7, tau = 5, " .. more .. " }" end

function test.lookup_ffns()
    local d = "d = 40, heads = 4, "
    verified(
        "merged",
        d .. "attention = { eliminate = 'QP', rope = {}, context = 60 }, " .. lookup(dense .. ", score = 'gelu'")
    )
    verified(
        "delivered",
        d
            .. "kv_heads = 2, layers = 3, attention = { eliminate = 'QKVP', rope = {}, window = 9, context = 60 }, "
            .. lookup(dense .. ", score = 'softmax', scale = '1/h'")
    )
    verified(
        "kept",
        d
            .. "kv_heads = 1, attention = { eliminate = 'QKV', context = 200 }, "
            .. lookup(bh4 .. ", score = 'gelu', neighbours = 3")
    )
    verified(
        "encoded",
        d
            .. "layers = 3, checkpoint = 'roberta', positions = 70, token_types = 1, attention = { eliminate = 'QKV', \z
                causal = false, context = 64 }, "
            .. lookup(bh4 .. ", score = 'gelu', neighbours = 32")
    )
    verified(
        "beside",
        d
            .. "parallel = true, checkpoint = 'gpt_neox', attention = { eliminate = 'K', rope = {}, context = 40 }, "
            .. lookup(dense .. ", score = 'gelu'")
    )
    verified(
        "plain",
        d
            .. "layers = 2, attention = { eliminate = 'QKV', context = 60 }, "
            .. lookup(dense .. ", score = 'one', scale = '1/h'")
    )
    verified(
        "probing",
        d
            .. "kv_heads = 2, attention = { eliminate = 'QP', rope = {}, context = 60 }, "
            .. lookup(dense .. ", score = 'one', neighbours = 3"),
        "--type",
        "i8"
    )
    verified(
        "normed",
        d
            .. "skip = true, norm = { kind = 'rmsnorm' }, attention = { eliminate = 'QP', rope = {}, context = 40 }, "
            .. lookup(bh4 .. ", score = 'gelu'")
    )
end

function test.types_of_tables()
    for _, type in ipairs(dtype.loaded_names) do
        local found = verified(
            "tables_" .. type,
            "d = 48, heads = 4, kv_heads = 2, attention = { eliminate = 'QKV', context = 40 }, "
                .. lookup(bh4 .. ", score = 'gelu'"),
            "--type",
            type,
            "--tables",
            type
        )
        for _, result in ipairs(found.results) do
            assert(result.rel_err > 1e-5 and result.rel_err < 0.5, type)
        end
    end
end

-- Both types of that name in one model, and the reference rounds each as its kernels read it.
function test.i4_weights_stand_beside_i4_tables()
    local text = "d = 40, heads = 4, attention = { eliminate = 'QP', context = 60 }, "
        .. lookup(dense .. ", score = 'gelu'")
    local types = { "--type", "i4", "--tables", "i4", "--activations", "i8", "--cache", "f32" }
    local words = { "verify", model("both", text), "--cflags", "-O0", "--json", "--isa", "scalar" }
    local found = json.decode(program.works(program.with(words, table.unpack(types))))
    for _, result in ipairs(found.results) do
        assert(result.kernel_rel_err > 0 and result.kernel_rel_err <= budget.f32[1], result.kernel_rel_err)
    end
end

-- Each of them in decoding, prefill and parts: beside the reference, and merged weights beside the unfused ones.
local function verified_alone(name, text, ...)
    local words = { "verify", model(name, text), "--cflags", "-O0", "--json", "--isa", "scalar" }
    local found = json.decode(program.works(program.with(words, ...)))
    check.equal(found.ok, true)
    for _, result in ipairs(found.results) do
        local kernel, all = table.unpack(budget[result.cache])
        assert(result.kernel_rel_err > 0 and result.kernel_rel_err <= kernel, name)
        if result.rel_err then assert(result.rel_err > 0 and result.rel_err <= all, name) end
    end
    return found
end

function test.attention_of_later_models()
    for _, words in ipairs { { "--cache", "f32" }, { "--cache", "i8", "--type", "i8", "--activations", "i8" } } do
        verified_alone(
            "later",
            "layers = 3, d = 32, heads = 4, kv_heads = 2, skip = true, norm = { kind = 'rmsnorm' }, attention = { \z
                window = 9, full_layers = { 1 }, soft_cap = 0.8, qk_norm = {}, context = 130, rope = { scaling = { \z
                kind = 'llama3', factor = 8, original = 20, fast = 4 } } }, \z
                ffn = { kind = 'glu', f = 33, activation = 'gelu_tanh' }",
            table.unpack(words)
        )
    end
end

function test.merged_around_norms_of_heads()
    local found = verified_alone(
        "around_norms",
        "d = 24, heads = 3, attention = { eliminate = 'VP', qk_norm = { eps = 1e-4 }, context = 40, rope = { \z
            scaling = { kind = 'yarn', factor = 4, original = 10, fast = 3 } } }, \z
            ffn = { kind = 'mlp', f = 33, activation = 'relu' }"
    )
    assert(found.results[1].rel_err)
end

function test.unit_queries_and_keys()
    local merged = verified_alone(
        "unit",
        "d = 40, heads = 5, kv_heads = 1, attention = { eliminate = 'QP', unit = true, rope = {}, context = 50 }, \z
            ffn = { kind = 'mlp', f = 50, activation = 'relu' }"
    )
    assert(merged.results[1].rel_err)
    verified_alone(
        "unit_ring",
        "d = 24, heads = 3, skip = true, norm = { kind = 'rmsnorm' }, attention = { unit = true, window = 9, \z
            context = 30 }, ffn = { kind = 'glu', f = 30, activation = 'silu' }",
        "--cache",
        "i8"
    )
end

function test.shifted_keys()
    verified_alone(
        "shifted",
        "d = 40, heads = 5, attention = { eliminate = 'QP', shifted = 2, context = 64 }, ffn = { kind = 'mlp', \z
            f = 50, activation = 'relu' }"
    )
    verified_alone(
        "shifted_ring",
        "d = 24, heads = 4, kv_heads = 2, skip = true, norm = { kind = 'rmsnorm' }, attention = { shifted = 1, \z
            unit = true, window = 33, rope = {}, context = 40 }, ffn = { kind = 'mlp', f = 30, activation = 'relu' }",
        "--cache",
        "i8"
    )
end

function test.wrong_templates_are_found()
    local ring = model(
        "wrong_ring",
        "d = 32, heads = 4, kv_heads = 2, attention = { eliminate = 'QP', rope = {}, window = 40, context = 40 }, ffn \z
            = { kind = 'glu', f = 48, activation = 'silu' }"
    )
    local path = model(
        "wrong",
        "d = 32, heads = 4, kv_heads = 2, attention = { eliminate = 'QP', rope = {}, context = 40 }, ffn = { kind = \z
            'glu', f = 48, activation = 'silu' }"
    )
    -- { template, text, what stands there instead, message, model, type, of the cache }
    local cases = {
        { "attention.c", '"seen"); k <', '"seen + 1"); k <', "relative error" },
        { "rotate.c", "b * cosine[$(i)] + a * sine[$(i)]", "b * cosine[$(i)] - a * sine[$(i)]", "relative error" },
        {
            "model.c",
            "if (tokens > $(context) || first > $(context) - tokens)",
            "if (tokens > $(context) + first)",
            "is not refused",
        },
        {
            "append.c",
            'position % " .. length',
            'position % (" .. length .. " - 1)"',
            "relative error",
            ring,
        },
        { "rotate.c", "size_t at = 256, rest", "size_t at = 0, rest", "scalar far: relative error", ring },
        {
            "attention.c",
            '"value_scale + " .. place',
            '"value_scale + 0 * " .. place',
            "relative error",
            ring,
            "f32",
            "i8",
        },
        { "places.c", 'some and "most * "', 'some and "4096 * most * "', "signal 11" },
        {
            "product_kernel.c",
            "k, one.at)",
            'k .. " / 2 * 2", one.at)',
            "inputs: output 0 of token 0 of 1 is",
            path,
            "i8",
        },
        { "round_rows.c", "words[$(words)] = start", "words[$(words)] = 2 * start", "relative error", path, "i8" },
        {
            "append_words.c",
            '"words[" .. word .. "]" or "(words[" .. word',
            '"words[" .. word .. "]" or "(words[0 * " .. word',
            "relative error",
            path,
            "i8",
            "i8",
        },
        {
            "softmax.c",
            '"unit > 1e-34f ? " .. dots.levels',
            '"unit > 1e-34f ? " .. dots.levels - 1',
            "all values together",
            path,
            "i8",
            "i8",
        },
        {
            "attention.c",
            "k < count$(dots and",
            "k + 1 < count$(dots and",
            "relative error",
            path,
            "bf16",
            "bf16",
        },
    }
    for _, case in ipairs(cases) do
        program.changed("templates/model/blocks/" .. case[1], case[2], case[3])
    end
    for _, case in ipairs(effort.some("planted", cases, #cases // 3)) do
        local template, from, to, message, own, type, cache = table.unpack(case)
        local tree = program.changed_tree("templates/model/blocks/" .. template, from, to)
        local words = { "--tree", tree, "verify", own or path, "--isa", "scalar", "--cflags", "-O0" }
        for _, option in ipairs { { "cache", cache }, { "type", type }, { "activations", type } } do
            words[#words + 1], words[#words + 2] = "--" .. option[1], option[2] or "f32"
        end
        local result = program.run(words)
        if result.status ~= 1 then error(from .. ": is not found", 0) end
        check.matches(result.errors, message)
    end
end

-- Only tokens near the first one see what its key does not fill.
function test.nan_of_an_early_token_is_found()
    local path = model(
        "early",
        "d = 16, heads = 2, kv_heads = 1, attention = { shifted = 1, window = 9, context = 40 }, ffn = { kind = \z
            'mlp', f = 16, activation = 'relu' }"
    )
    local own = "position > 0 ? position + 1 : 0"
    local tree = program.changed_tree("templates/model/blocks/append.c", own, "position + 1")
    local result = program.run { "--tree", tree, "verify", path, "--isa", "scalar", "--cflags", "-O0" }
    check.equal(result.status, 1)
    check.matches(result.errors, "relative error %-?nan")
end

return test
