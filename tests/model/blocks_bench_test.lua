-- bench of a transformer prints every row, its JSON has the keys that docs/json.md lists, and blocks that are wrong are
-- not timed.
local check = require "tests.support.check"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"

local test = {}
local folder = program.folder()

local function model(name, text)
    return program.model(folder, name, "return { name = '" .. name .. "', vocab = 30, " .. text .. " }")
end

local gated =
    "layers = 3, d = 32, heads = 4, kv_heads = 2, attention = { eliminate = 'QP', rope = {}, context = 40 }, ffn = { \z
        kind = 'glu', f = 48, activation = 'silu' }"

local encoder = gated:gsub("rope = {}", "causal = false")

local function bench(path, ...) return { "bench", path, "--cflags", "-O0", "--repetitions", "1", ... } end

local function positive(r, keys)
    for key in keys:gmatch "%S+" do
        if not (math.type(r[key]) and r[key] > 0 and r[key] < 1e9) then error(key .. ": " .. tostring(r[key])) end
    end
end

function test.for_machines()
    local found = json.decode(
        program.works(bench(
            model("timed", gated),
            "--type",
            "f32,i8",
            "--activations",
            "f32,i8",
            "--batch",
            "1,7",
            "--position",
            "33",
            "--json"
        ))
    )
    for _, key in ipairs { "cpu", "isa", "compiler", "flags", "openblas", "onednn" } do
        check.equal(found.host[key] ~= nil and key, key)
    end
    positive(found.limits, "fma_gflops l1_gbytes l2_gbytes l3_gbytes memory_gbytes")
    local rows, types = {}, {}
    for i, r in ipairs(found.results) do
        rows[i] = r.type .. " " .. (r.activations or "f32") .. " " .. r.tokens
        positive(
            r,
            "us_per_token unfused_us_per_token speedup predicted_speedup speedup_share gbytes read_gbytes read_share \z
                gflops products_us_per_token products_gflops "
                .. "cpu_over_wall rel_err unfused_rel_err layers threads"
        )
        check.equal(
            { r.model, r.position, r.layers, r.threads, r.again_ratio ~= nil },
            { "timed", 33, 3, 1, r.tokens == 1 }
        )
        -- Fused: K and V, 32 by 16 each, and the FFN's three of 32 by 48; unfused also Q and P.
        check.near(r.predicted_speedup, (2 * 512 + 3 * 1536 + 2 * 1024) / (2 * 512 + 3 * 1536), 1e-9)
        check.near(r.speedup, r.unfused_us_per_token / r.us_per_token, 1e-6 * r.speedup)
        check.near(r.read_share, r.gbytes / r.read_gbytes, 1e-6 * r.read_share)
        check.equal(r.same_type, r.activations or "f32")
        local same, f32
        for _, rival in ipairs(r.rivals) do
            positive(rival, "us_per_token speedup rel_err")
            check.near(rival.speedup, rival.us_per_token / r.products_us_per_token, 1e-6 * rival.speedup)
            check.equal({ rival.type, rival.rel_err < (rival.type == "f32" and 1e-5 or 5e-2) }, { rival.type, true })
            local function faster(than) return not than or rival.us_per_token < than.us_per_token end
            if (r.same_type == "i8" or rival.type == "f32") and faster(same) then same = rival end
            if rival.type == "f32" and faster(f32) then f32 = rival end
        end
        check.equal({ r.same_type_rival, r.f32_rival }, { same, f32 })
        types[#types + 1] = r.rivals[#r.rivals].type
        check.equal({ r.rel_err < (r.activations and 5e-2 or 1e-5), type(r.counts) }, { true, "boolean" })
    end
    check.equal(rows, { "f32 f32 1", "f32 f32 7", "i8 f32 1", "i8 f32 7", "i8 i8 1", "i8 i8 7" })
    check.equal(types, { "f32", "f32", "i8", "i8", "i8", "i8" })
    local attention = {}
    for i, r in ipairs(found.attention) do
        attention[i] = r.tokens .. " " .. r.position
        positive(
            r,
            "us_per_token gbytes read_gbytes read_share gflops baseline_us_per_token speedup layers cpu_over_wall"
        )
        check.equal(type(r.counts), "boolean")
        check.near(r.speedup, r.baseline_us_per_token / r.us_per_token, 1e-6 * r.speedup)
    end
    check.equal(attention, { "1 39", "7 0", "1 39", "7 0" }) -- of each type of the cache
end

function test.for_people()
    local text = program.works(bench(model("shown", gated), "--type", "bf16", "--isa", "scalar"))
    check.matches(text, "^shown on [^\n]*one thread: one of 3 blocks\nisa     weights tokens ")
    check.matches(text, "\nscalar  bf16         1 +[%d.]+ +[%d.]+ +[%d.]+ +1%.364 +[%d.]+ +%d+ %% ")
    check.matches(text, "\nscalar  bf16        40 +[%d.]+ +[%d.]+ +[%d.]+ +1%.364 +%- +%- ")
    check.matches(text, "\nits products alone\nisa     weights tokens ")
    check.matches(text, "\nscalar  bf16         1 +[%d.]+ +[%d.]+ +[%d.]+ %l+ %l+%d+ +[%d.]+ +%d.%de.%d+ ")
    check.matches(text, "\nattention alone\nisa     cache ")
    check.matches(text, "\nscalar  f32          1       39 ")
    check.matches(text, "\nscalar  f32         40        0 ")
    check.matches(text, "\nA/A control: the same blocks at 1 tokens measured twice differ ")
end

-- Blocks of every kind: norms and skip connections, an architecture of its own, parallel ones, windows, nothing
-- eliminated.
function test.other_kinds_of_blocks()
    local models = {
        own = "layers = 1, d = 32, heads = 2, parallel = true, skip = true, norm = { kind = 'layernorm' }, checkpoint \z
            = 'gpt_neox', attention = { eliminate = 'QP', rope = { share = 0.5 }, context = 40 }, ffn = { kind = \z
            'mlp', f = 40, activation = 'gelu_tanh' }",
        none = "layers = 1, d = 24, heads = 3, kv_heads = 1, attention = { window = 9, context = 40 }, ffn = { kind = \z
            'mlp', f = 40, activation = 'relu' }",
        wide = "layers = 1, d = 528, heads = 4, attention = { eliminate = 'KP', context = 12 }, ffn = { kind = 'glu', \z
            f = 64, activation = 'gelu' }",
    }
    for _, name in ipairs(effort.turns({ "own", "none", "wide" }, effort.shapes_stride)) do
        local found = json.decode(program.works(bench(model(name, models[name]), "--batch", "1,6", "--json")))
        check.equal(
            { #found.results, #found.attention, found.results[1].unfused_us_per_token == nil },
            { 2, 2, name == "none" }
        )
    end
end

-- Tokens that attend to all others have no positions: they are encoded in one call, and so they are by the baselines.
function test.encoders()
    local models = { both = encoder, near = encoder:gsub("causal", "window = 3, causal") }
    for _, name in ipairs(effort.turns({ "both", "near" }, effort.shapes_stride)) do
        local text = models[name]
        local found = json.decode(program.works(bench(model(name, text), "--batch", "1,7,40", "--json")))
        local calls = {}
        for i, r in ipairs(found.results) do
            positive(
                r,
                "us_per_token unfused_us_per_token speedup gflops products_us_per_token rel_err"
            )
            calls[i] = { r.tokens, r.position }
        end
        check.equal(calls, { { 1, 0 }, { 7, 0 }, { 40, 0 } })
        check.equal(
            { #found.attention, found.attention[1].tokens, found.attention[2].tokens, found.attention[1].position },
            { 2, 7, 40, 0 }
        )
        for _, r in ipairs(found.attention) do
            positive(r, "us_per_token gflops baseline_us_per_token speedup")
            -- 32 elements of queries, each with all tokens or those less than 3 away.
            local met = name == "both" and r.tokens or 5 - 6 / r.tokens
            check.near(r.gflops * r.us_per_token * 1e3, 4 * 32 * met, 1e-3 * 4 * 32 * met)
        end
    end
end

function test.what_cannot_be_timed()
    local path = model("refused", gated)
    program.refuses(
        2,
        "--batch: 8: from position 33 on must be at most attention.context = 40",
        bench(path, "--batch", "8", "--position", "33")
    )
    program.refuses(
        2,
        '--type: "f64": must be one of ' .. table.concat(dtype.names, ", "),
        bench(path, "--type", "f32,f64")
    )
    program.refuses(2, '--type: "i8": given twice', bench(path, "--type", "i8,i8"))
    program.refuses(
        2,
        "--position: 3: must be 0 where both has causal = false",
        bench(model("both", encoder), "--position", "3")
    )
end

-- Another project's checkout in which a template was changed.
local function sabotaged(path, from, to)
    local tree = program.folder()
    for _, part in ipairs { "commands", "gen", "harness", "templates", "LICENSE" } do
        assert(process.run({ "cp", "-r", part, tree .. "/" .. part }).status == 0)
    end
    local text = assert(host.read(path))
    local first, last = text:find(from, 1, true)
    if not first then error(path .. ": no longer has " .. from) end
    assert(host.write_file(tree .. "/" .. path, text:sub(1, first - 1) .. to .. text:sub(last + 1)))
    return tree
end

function test.wrong_blocks_are_not_timed()
    local path = model("wrong", gated)
    local cases = {
        { "templates/model/blocks/attention.c", "for (size_t k = seen; k <", "for (size_t k = seen + 1; k <" },
        { "templates/model/blocks/product.c", 'isa.add("sums", "offsets")', 'isa.mul("sums", "offsets")' },
    }
    for _, case in ipairs(effort.turns(cases, effort.wrong_stride)) do
        local result = program.run {
            "--tree",
            sabotaged(table.unpack(case)),
            table.unpack(bench(path, "--isa", "scalar", "--batch", "1")),
        }
        check.equal({ result.status, result.output }, { 1, "" })
        check.matches(
            result.errors,
            "wrong.lua: the scalar blocks fail verification: decode: relative error [^\n]*: nothing was timed\n$"
        )
    end
end

return test
