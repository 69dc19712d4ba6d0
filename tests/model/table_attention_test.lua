-- Attention by tables of values: its reference, and what verify finds of its kernels.
local block_reference = require "block_reference"
local check = require "tests.support.check"
local checkpoints = require "tests.support.checkpoints"
local effort = require "tests.effort"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local model = require "gen.families.model_file"
local model_plan = require "gen.families.model.plan"
local program = require "tests.support.program"
local sets = require "tests.support.sets"
local verify = require "harness.families.model.verify"

local test = {}
local folder = program.folder()

-- The job of the reference for a block whose output is a linear map of what its heads mix, and what it is given.
local function linear_job(causal)
    local text = [[return { name = "linear", d = 64, heads = 2, head_dim = 64, kv_heads = 1, layers = 1, vocab = 20,
        attention = { kind = "lsh", tau = 3, window = 2, context = 24, causal = %s },
        ffn = { kind = "mlp", f = 64, activation = "relu" } }]]
    local path = program.model(folder, "linear", text:format(causal))
    local p = model_plan.build(model.load(path), isa.select "scalar", {})
    local prepared = verify.prepare(p, program.folder(), { seed = 3 })
    local job = prepared.answers[1].job
    local function answer(lsh, margin, turned)
        lsh.eps = 1000 -- beside which |y| is nothing: an output of a head is a thousandth of y
        local own = { activation = "none", margin = margin or 0, turned = turned }
        own.lsh = setmetatable(lsh, { __index = job.lsh })
        return block_reference.answers(setmetatable(own, { __index = job }), prepared.x)
    end
    return answer, p.shape.d
end

-- The mean of strings of doubles.
local function mean_of(list)
    local sums = {}
    for _, values in ipairs(list) do
        for i = 1, #values // 8 do
            sums[i] = (sums[i] or 0) + string.unpack("<d", values, 8 * i - 7)
        end
    end
    for i, sum in ipairs(sums) do
        sums[i] = string.pack("<d", sum / #list)
    end
    return table.concat(sums)
end

function test.the_mean_over_seeds_is_what_is_expected()
    for _, causal in ipairs { true, false } do
        local answer, d = linear_job(causal)
        local expected, list = answer { expected = true }, {}
        local function off() return select(3, block_reference.difference(mean_of(list), expected, d)) end
        local first
        for seed = 1, 128 do
            list[seed] = answer { seed = seed }
            first = seed == 2 and off() or first
        end
        assert(first > 0.05 and off() < first / 4, off())
        -- All tokens are near: nothing is sampled.
        check.equal(answer { window = 24 }, expected)
        check.equal(answer { window = 24, seed = 7 }, expected)
    end
end

function test.plan_says_what_tables_cost()
    local text = "return { name = 'cost', d = 512, heads = 8, layers = 1, vocab = 20, attention = { kind = 'lsh', \z
        context = 2048, causal = %s }, ffn = { kind = 'mlp', f = 64, activation = 'relu' } }"
    local function printed(causal, ...)
        return program.works { "plan", program.model(folder, "cost", text:format(causal)), ... }
    end
    local short = printed(true, "--cache", "i8")
    check.matches(short, "16 tables of 256 rows, 16 tokens in i8, as 4032 positions")
    check.matches(printed(false, "--cache", "i8"), "keys, values and codes of 2048 positions in f32")
    local refused = { "plan", folder .. "/cost.lua", "--cache", "f16" }
    program.refuses(2, '--cache: f16: must be f32 or i8 with attention.kind = "lsh"', refused)
    check.matches(printed(true), "16 tables of 256 rows, 16 tokens in f32, as 2095 positions")
    check.matches(printed(true), "break%-even +200 tokens[^\n]* in f32\n")
    check.matches(printed(false), "break%-even +120 tokens")
    local function tables(causal) return json.decode(printed(causal, "--json")).tables end
    check.equal(tables(true), { break_even = 200, equivalent_positions = 2095 })
    check.equal(tables(false), { break_even = 120 })
    text = text:gsub("2048", "128")
    check.matches(printed(true), "break%-even +200 tokens[^\n]* in f32; a context has 128\n")
end

function test.headers_and_plans_say_what_is_kept_of_tokens()
    local text = "return { name = 'kept', d = 16, heads = 1, layers = 1, vocab = 30, embedding = {}, output = {}, \z
        attention = { kind = 'lsh', context = 40, tau = 2, window = %d, causal = %s }, ffn = { kind = 'lookup' } }"
    local function printed(window, causal)
        return program.works { "plan", program.model(folder, "kept", text:format(window, causal)) }
    end
    check.matches(printed(3, false), "blocks_cache .* keys, values and codes\n")
    local into = folder .. "/kept"
    for window, kept in pairs { [0] = "tables", "tables and the last 1 token" } do
        printed(window, true)
        program.works { "emit", folder .. "/kept.lua", "--isa", "scalar", "-o", into }
        check.matches(assert(host.read(into .. "/kept.h")), "a sequence: its position, " .. kept .. " %*/")
    end
end

function test.ties_of_codes_are_noted_and_turned()
    local answer, d = linear_job(false)
    local y, ties = answer({}, 0.002)
    assert(#ties > 0 and #ties < 24 * 3 * 16 / 4, #ties)
    local moved = 0
    for i = 1, math.min(#ties, 8) do
        check.equal(ties[i].token < 24 and ties[i].layer, 0)
        if block_reference.difference(answer({}, 0.002, { ties[i] }), y, d) > 1e-3 then moved = moved + 1 end
    end
    assert(moved > 0)
end

local vectors = "d = 20, heads = 4, kv_heads = 2, head_dim = 24, layers = 2, vocab = 30, skip = true, "
    .. "norm = { kind = 'rmsnorm' }, ffn = { kind = 'mlp', f = 16, activation = 'relu' }, "

-- Model files by name: heads that fill no vector, codes that fill no round, windows shorter and longer than a call.
local models = {
    steps = vectors .. "attention = { kind = 'lsh', context = 70, rope = {}, shifted = 1, tables = 9, tau = 5 }",
    bare = vectors .. "attention = { kind = 'lsh', context = 40, tables = 3, tau = 16, window = 0, qk_norm = {} }",
    last = vectors .. "attention = { kind = 'lsh', context = 40, tau = 2, tables = 6, window = 1 }",
    both_ways = vectors
        .. "attention = { kind = 'lsh', context = 70, rope = {}, shifted = 2, tau = 4, window = 5, causal = false }",
    near = vectors .. "attention = { kind = 'lsh', context = 40, tau = 2, window = 40, causal = false }",
    whole = "d = 16, heads = 1, layers = 2, vocab = 30, embedding = {}, output = { head = {} }, \z
        attention = { kind = 'lsh', context = 50, tau = 2, window = 40 }, ffn = { kind = 'lookup' }",
    sequences = "d = 16, heads = 2, layers = 2, vocab = 30, embedding = {}, output = { pool = 'mean' }, \z
        attention = { kind = 'lsh', context = 70, tau = 2, causal = false, shifted = 1 }, ffn = { kind = 'lookup' }",
    in_part = "d = 16, heads = 2, layers = { { attention = { kind = 'exact', unit = true } }, { count = 2 }, \z
        { attention = { kind = 'lsh', window = 3 } } }, vocab = 30, embedding = {}, output = { head = {} }, \z
        attention = { kind = 'lsh', context = 50, tau = 2, window = 40, rope = {} }, \z
        ffn = { kind = 'mlp', f = 9, activation = 'relu' }",
    behind_windows = "d = 16, heads = 2, layers = { {}, { attention = { kind = 'lsh', tau = 3 } } }, vocab = 30, \z
        embedding = {}, output = { head = {} }, attention = { context = 50, window = 7, rope = {} }, \z
        ffn = { kind = 'lookup' }",
    sequences_in_part = "d = 16, heads = 2, layers = { { attention = { kind = 'lsh', tables = 3 } }, {} }, \z
        vocab = 30, embedding = {}, output = { pool = 'mean' }, \z
        attention = { context = 70, causal = false, unit = true }, \z
        ffn = { kind = 'mlp', f = 9, activation = 'relu' }",
}

-- The words that verify model `name` in calls of several chunks, and its path.
local function verifying(name)
    local path = program.model(folder, name, "return { name = '" .. name .. "', " .. models[name] .. " }")
    local words = { "verify", path, "--schedule", "chunk.tokens=12", "--cflags", "-O0", "--json" }
    return program.with(words, "--isa", sets.in_turn()), path
end

local ways =
    { "steps", "bare", "last", "both_ways", "whole", "sequences", "in_part", "behind_windows", "sequences_in_part" }

-- Token by token, all at once, in parts, and several sequences: all as the reference.
function test.all_ways_to_call_it_agree()
    for _, name in ipairs(effort.some("transformers", ways, 5)) do
        for _, result in ipairs(json.decode(program.works((verifying(name)))).results) do
            assert((result.kernel_rel_err or result.rel_err) <= 1e-5, name)
        end
    end
end

-- In i8 rows of tables are sums in 16 bits of values rounded to 8, also where products round their inputs.
function test.tables_of_short_sums_agree()
    local names = { "steps", "bare", "both_ways", "sequences", "last", "near" }
    for _, name in ipairs(effort.some("transformers", names, 3)) do
        local inputs = (name == "last" or name == "near") and { "--type", "i8", "--activations", "i8" } or {}
        program.works(program.with(verifying(name), "--cache", "i8", table.unpack(inputs)))
    end
end

-- A unit is for the values that tables hold, not for those of later tokens.
function test.short_sums_do_not_depend_on_later_tokens()
    local text = "d = 16, heads = 1, layers = 1, vocab = 30, embedding = {}, output = { head = {} }, attention = \z
        { kind = 'lsh', context = 50, tau = 2, window = 4 }, ffn = { kind = 'mlp', f = 16, activation = 'relu' }"
    local path = program.model(folder, "later", "return { name = 'later', " .. text .. " }")
    local from, y = checkpoints.path_of "later.safetensors", folder .. "/later.npy"
    program.works { "sample", path, "-o", from }
    assert(host.write_file(folder .. "/later.txt", ("3 17 25 8 1 29 "):rep(8)))
    local words = { "run", path, "--weights", from, "--ids", folder .. "/later.txt", "--cache", "i8" }
    words = program.with(words, "--isa", "scalar", "--cflags", "-O0", "--output")
    program.works(program.with(words, y))
    program.works(program.with(words, folder .. "/steps.npy", "--decode", "--expect", y))
end

-- A value that is not finite makes outputs NaN from its token on, in i8 to the end; a large one makes units larger.
function test.short_sums_take_values_of_any_size()
    local text = "d = 20, heads = 1, layers = 1, vocab = 30, attention = { kind = 'lsh', context = 50, \z
        tau = 2, window = 3 }, ffn = { kind = 'mlp', f = 16, activation = 'gelu' }"
    local path = program.model(folder, "sizes", "return { name = 'sizes', " .. text .. " }")
    local from, x, y = checkpoints.path_of "sizes.safetensors", folder .. "/x.npy", folder .. "/sizes.npy"
    program.works { "sample", path, "-o", from }
    local words = { "run", path, "--weights", from, "--input", x, "--cflags", "-O0" }
    words = program.with(words, "--isa", sets.in_turn())
    local input = "x = np.random.default_rng(1).normal(size=(40, 20)); x[9, 19] *= float(sys.argv[2]); \z
        np.save(sys.argv[1], x.astype('<f4'))"
    local nan = "assert (np.isnan(np.load(sys.argv[1])).any(1) == (np.arange(40) >= 9)).all()"
    for _, value in ipairs { "nan", "inf" } do
        program.python(input, x, value)
        program.works(program.with(words, "--cache", "i8", "--output", y))
        program.python(nan, y)
    end
    program.python(input:gsub("x%[9, 19%]", "x[9:]"), x, "1e6")
    program.works(program.with(words, "--cache", "f32", "--output", y))
    local bound = { "--tolerance", "0.2", "--output", folder .. "/other.npy" }
    program.works(program.with(words, "--cache", "i8", "--expect", y, table.unpack(bound)))
end

-- A row whose squares overflow is NaN, in scalar code, too: a root of infinity would leave zeros.
function test.sums_whose_squares_overflow_are_nan()
    local path = program.model(folder, "large", "return { name = 'large', " .. models.last .. " }")
    local from, x, y = checkpoints.path_of "large.safetensors", folder .. "/large_x.npy", folder .. "/large.npy"
    program.works { "sample", path, "-o", from }
    program.python("np.save(sys.argv[1], np.full((20, 20), 1e20, '<f4'))", x)
    for _, set in ipairs { "scalar", sets.here()[#sets.here()] } do
        local words = { "run", path, "--weights", from, "--input", x, "--isa", set, "--cflags", "-O0", "--output", y }
        program.works(words)
        program.python("assert np.isnan(np.load(sys.argv[1])).all()", y)
    end
end

-- All tokens are one, whose values fill a row of each table: sums double their unit before 16 bits are full.
function test.units_double_before_short_sums_overflow()
    local path = program.model(
        folder,
        "full",
        [[return { name = "full", d = 16, heads = 1, layers = 1, vocab = 3, embedding = {}, output = { head = {} },
        attention = { kind = "lsh", context = 70, tau = 2, tables = 8, window = 1, eps = 1 },
        ffn = { kind = "mlp", f = 16, activation = "relu" } }]]
    )
    local from = checkpoints.path_of "full.safetensors"
    program.works { "sample", path, "-o", from }
    local ones = checkpoints.with(from, { "model.embed_tokens.weight" }, { 3, 16 })
    local small = checkpoints.with(ones, { "model.layers.0.self_attn.v_proj.weight" }, { 16, 16 }, nil, 1e-4)
    local words = { "verify", path, "--weights", small, "--cache", "i8", "--isa", "scalar", "--cflags", "-O0" }
    words = program.with(words, "--schedule", "chunk.tokens=24")
    program.works(words)
    local tree = program.changed_tree("templates/model/blocks/short_tables.c", "2.0f * unit", "unit")
    check.equal(program.run({ "--tree", tree, table.unpack(words) }).status, 1)
end

function test.layers_attend_in_different_ways()
    local _, path = verifying "in_part"
    local said = program.works { "plan", path }
    check.matches(said, "a sequence, 64 positions in f32; 16 tables of 4 rows, 40 tokens in f32")
    check.matches(said, "; 16 tables of 4 rows, 3 tokens in f32")
    local function refuses(entry, line)
        local text = models.in_part:gsub("{ count = 2 }", "{ attention = { " .. entry .. " } }")
        local bad = program.model(folder, "bad", "return { name = 'bad', " .. text .. " }")
        program.refuses(1, "layers.2.attention." .. line, { "plan", bad })
    end
    refuses("tau = 2", "kind: required key is missing")
    refuses("kind = 'exact', window = 3", 'window = 3: only for kind = "lsh"')
    refuses("kind = 'lsh', unit = true", 'kind = "lsh": needs attention without unit')
    refuses("kind = 'lsh', tau = 9", "tau = 9: must be at most the width of a head, filled up to 8")
    refuses("kind = 'lsh', context = 3", "context = 3: unknown key")
end

-- As where training starts: a token's own key is its query, whose weight depends on the last bits of their cosine.
function test.verify_allows_for_keys_like_queries()
    local text = "d = 16, heads = 1, layers = 1, vocab = 30, ffn = { kind = 'mlp', f = 16, activation = 'relu' }, \z
        attention = { kind = 'lsh', context = 40, tau = 16, eps = 1 }"
    local path, own = program.model(folder, "alike", "return { name = 'alike', " .. text .. " }"), {}
    local from = checkpoints.path_of "alike.safetensors"
    program.works { "sample", path, "-o", from }
    own["model.layers.0.self_attn.q_proj.weight"] = "model.layers.0.self_attn.k_proj.weight"
    local words = { "verify", path, "--weights", checkpoints.with_copies(from, own), "--isa", "scalar" }
    check.matches(program.works(program.with(words, "--cflags", "-O0")), "rounding to float32 alone")
end

-- Values that tables round move codes of LookupFFNs: the reference takes those of the kernels.
function test.verify_allows_for_codes_that_short_sums_move()
    local text = "d = 48, heads = 2, head_dim = 24, layers = 2, vocab = 60, norm = { kind = 'rmsnorm' }, skip = true, \z
        attention = { kind = 'lsh', context = 100 }, embedding = {}, output = {}, ffn = { kind = 'lookup', h = 24, \z
        tau = 6, score = 'gelu', projection = { kind = 'bh4', block = 8 } }"
    local path = program.model(folder, "moved", "return { name = 'moved', " .. text .. " }")
    local words = { "verify", path, "--isa", "scalar", "--type", "i8", "--cache", "i8", "--activations", "f32" }
    check.matches(program.works(program.with(words, "--cflags", "-O0")), "codes other than the reference's")
end

-- They move codes of the next layer's tables, too, more than the reference turns: other samples decide.
function test.verify_allows_for_chance_behind_short_sums()
    local text = "d = 10, heads = 1, layers = 2, vocab = 40, skip = true, norm = { kind = 'rmsnorm' }, attention = \z
        { kind = 'lsh', tables = 3, tau = 3, window = 0, context = 150, causal = false, \z
        rope = { pairs = 'interleaved' } }, \z
        ffn = { kind = 'lookup', h = 2, tau = 4, score = 'gelu', projection = { kind = 'dense' } }"
    local path = program.model(folder, "chance", "return { name = 'chance', " .. text .. " }")
    local words = { "verify", path, "--isa", "scalar", "--cache", "i8", "--seed", "10", "--cflags", "-O0", "--json" }
    local found = json.decode(program.works(words)).results[1]
    assert(found.kernel_rel_err > 0.05 and found.cache_err < 0.01, "the first sample is within the bounds")
end

function test.verify_finds_wrong_templates()
    local cases = {
        { "hash.c", "n * half * lanes, (n", "0, (n", "steps" },
        { "tables_of_decoder.c", "token < $(window) ? values", "token > $(window) ? values", "steps" },
        { "near_tokens.c", "-(float) agree", "-0.5f * (float) agree", "both_ways" },
        { "windows_of_encoder.c", "position + $(window) < end", "position + $(window) > end", "both_ways" },
        { "attend_tables.c", "first + token > 0 ?", "first + token > 1 ?", "steps" },
        { "keep_last.c", "(first + token) % $(window)] =", "first % $(window)] =", "steps" },
        { "append_tables.c", "first > 0 ? first + 1", "first > 0 ? first + 2", "sequences" },
        { "tables_of_decoder.c", "if (first == 0)", "if (first == 1)", "steps" },
    }
    for _, case in ipairs(cases) do
        program.changed("templates/model/blocks/" .. case[1], case[2], case[3])
    end
    for _, case in ipairs(effort.some("planted", cases, 3)) do
        local tree = program.changed_tree("templates/model/blocks/" .. case[1], case[2], case[3])
        local result = program.run { "--tree", tree, table.unpack((verifying(case[4]))) }
        if result.status ~= 1 then error(case[2] .. ": is not found", 0) end
    end
end

function test.a_checkpoint_may_have_signs_of_its_own()
    local _, path = verifying "whole"
    local from = checkpoints.path_of "signs.safetensors"
    program.works { "sample", path, "-o", from }
    local name = "model.layers.1.attention_signs"
    local function packed(with)
        local blob = checkpoints.path_of "signs.bin"
        program.works { "pack", path, "--weights", with, "-o", blob }
        return host.read(blob)
    end
    local own = checkpoints.with(from, { name }, { 2, 16 })
    assert(packed(from) ~= packed(own))
    local ones = { "verify", path, "--weights", own, "--cflags", "-O0", "--isa", "scalar" }
    program.works(ones)
    local half = checkpoints.with(from, { name }, { 2, 16 }, nil, 0.5)
    local words = { "pack", path, "--weights", half, "-o", checkpoints.path_of "signs.bin" }
    program.refuses(1, "tensor " .. name .. ": element 0 = 0.5: must be 1 or -1", words)
end

return test
