-- bench of blocks prints every row; of a whole model it times every length that is asked for, by stage and beside the
-- dense twin. Its JSON has the keys that docs/json.md lists, and a model that is wrong is not timed.
local check = require "tests.support.check"
local combinations = require "harness.measure.combinations"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local program = require "tests.support.program"

local test = {}
local folder = program.folder()

local lookup =
    "{ kind = 'lookup', h = 4, tau = 4, projection = { kind = 'bh4', block = 16, decay = 0.7 }, score = 'gelu' }"

local function model(name, text)
    return program.model(
        folder,
        name,
        "return { name = '"
            .. name
            .. "', d = 32, heads = 2, skip = true, vocab = 50, embedding = {}, norm = { kind = 'layernorm' }, "
            .. text
            .. " }"
    )
end

local function blocks(name, text)
    return program.model(folder, name, "return { name = '" .. name .. "', vocab = 30, " .. text .. " }")
end

local function encoder(name)
    return model(
        name,
        "layers = 2, attention = { causal = false, context = 40 }, positions = 40, checkpoint = 'lookupffn', \z
            output = { norm = { kind = 'layernorm' }, head = {} }, ffn = " .. lookup
    )
end

local function bench(path, ...)
    return { "bench", path, "--cflags", "-O0", "--isa", "scalar", "--repetitions", "1", ... }
end

local function is_stages(stages)
    for _, name in ipairs { "embedding", "products", "attention", "ffn", "head" } do
        check.equal(math.type(stages[name]), "float", name)
    end
end

function test.encoders_beside_their_dense_twin()
    local weights = folder .. "/encoder.safetensors"
    local path = encoder "encoder"
    program.works { "sample", path, "-o", weights }
    local found = json.decode(program.works(bench(path, "--lengths", "40", "--json", "--weights", weights)))
    local rows = {}
    for i, r in ipairs(found.results) do
        rows[i] = { r.call, r.tokens, r.sequences, r.position, r.type, r.isa, r.cache }
        is_stages(r.stages)
        check.near(r.us_per_token * r.tokens, r.us_per_sequence, 1e-6 * r.us_per_sequence)
        check.near(r.speedup, r.dense.us_per_sequence / r.us_per_sequence, 1e-6 * r.speedup)
        check.near(r.body_speedup, r.dense.body_us_per_sequence / r.body_us_per_sequence, 1e-6 * r.body_speedup)
        check.equal({ r.rel_err < 1e-5, r.dense.rel_err < 1e-5, type(r.counts) }, { true, true, "boolean" })
        check.equal({ r.model, r.cpu_over_wall > 0 }, { "encoder", true })
        check.equal(math.type(r.stages_share), "float") -- of differences of times, which noise may make negative
        check.equal(math.type(r.dense.ffn), "float")
        check.equal(r.again_ratio ~= nil, i == #found.results)
    end
    check.equal(rows, {
        { "encode", 40, 1, 0, "f32", "scalar", "f32" },
        { "encode", 40, 13, 0, "f32", "scalar", "f32" },
    })
    check.equal(found.host.cpu ~= nil, true)
end

function test.decoders_prefill_and_step()
    local path = model(
        "decoder",
        "layers = { { d_in = 32 } }, attention = { context = 20 }, checkpoint = 'llama', tied = true, \z
            output = { norm = { kind = 'layernorm' }, head = {} }, ffn = { kind = 'glu', f = 48, activation = 'silu' }"
    )
    local page = folder .. "/page.html"
    local text = program.works(bench(path, "--type", "i8", "--html", page, "--threads", "2"))
    check.matches(text, "medians of interleaved wall times")
    check.matches(assert(host.read(page)), "<title>decoder: the time of a whole model</title>")
    check.matches(assert(host.read(page)), ">prefill</td>")
    check.matches(text, "^decoder on [^\n]*, up to 2 threads\nisa     weights call    tokens position us/sequence ")
    check.matches(text, "\nscalar  i8      prefill     16        %- ")
    check.matches(text, "\nscalar  i8      step         1        0 ")
    check.matches(text, "\nscalar  i8      step         1       19 ")
    check.matches(text, "\nby stage, us/sequence\n[^\n]* embedding  products attention       FFN      head together\n")
    check.matches(text, "\nA/A control: the last call measured twice ")
end

local by_tables = "{ kind = 'lsh', tables = 2, tau = 2, window = 4, context = 40, "

-- The rows that `found` has under `key`, as text; each is beside exact attention, in `exact` of it where `whole`.
local function beside_exact(found, key, whole)
    local rows = {}
    for i, r in ipairs(found[key]) do
        rows[i] = string.format("%s %d %d", r.call or "", r.tokens, r.position)
        if whole then
            local e = r.exact
            check.near(e.speedup, e.us_per_sequence / r.us_per_sequence, 1e-6 * e.speedup)
            check.near(e.body_speedup, e.body_us_per_sequence / r.body_us_per_sequence, 1e-6 * e.body_speedup)
            check.near(e.attention_speedup * r.stages.attention, e.attention, 1e-6 * math.abs(e.attention))
            check.equal(e.rel_err < 1e-5 and e.rel_err ~= r.rel_err, true)
        else
            check.near(r.exact_speedup, r.exact_us_per_token / r.us_per_token, 1e-6 * r.exact_speedup)
        end
    end
    return rows
end

function test.attention_by_tables_beside_exact_attention()
    local page = folder .. "/tables.json"
    local function measured(path, ...)
        local text = program.works(bench(path, "--json", ...))
        assert(host.write_file(page, text))
        program.works { "report", page }
        return json.decode(text)
    end
    local found = measured(
        model(
            "tabled",
            "layers = 1, checkpoint = 'lookupffn', attention = " .. by_tables .. "causal = false }, ffn = " .. lookup
        ),
        "--lengths",
        "8"
    )
    check.equal(beside_exact(found, "results", true), { "encode 8 0", "encode 8 0" })
    -- The dense twin is exact, too.
    check.equal(found.results[1].dense.rel_err ~= found.results[1].exact.rel_err, true)
    local decoder = "layers = 1, checkpoint = 'llama', attention = "
        .. by_tables
        .. "rope = {} }, ffn = { kind = 'mlp', f = 32, activation = 'relu' }"
    local steps = { "prefill 8 0", "step 1 0", "step 1 7", "step 1 39" }
    found = measured(model("tabled_decoder", decoder .. ", output = { head = {} }"), "--lengths", "8")
    check.equal(beside_exact(found, "results", true), steps)
    local own = blocks("tabled_blocks", "d = 32, heads = 2, " .. decoder)
    found = measured(own, "--batch", "1,8")
    check.equal(beside_exact(found, "results"), { " 1 0", " 8 0" })
    check.equal(beside_exact(found, "attention"), { " 1 7", " 1 39", " 8 0" })
end

-- A window has no end: the context says where a step is timed.
function test.windows()
    local path = model(
        "windowed",
        "layers = 1, attention = { context = 20, window = 5, rope = {} }, checkpoint = 'llama', \z
            output = { head = {} }, ffn = { kind = 'mlp', f = 48, activation = 'gelu' }"
    )
    local found = json.decode(program.works(bench(path, "--lengths", "20", "--json")))
    check.equal({ found.results[1].tokens, found.results[2].position, found.results[3].position }, { 20, 0, 19 })
    program.refuses(2, '--lengths: "21": must be integers from 1 to the context, 20', bench(path, "--lengths", "21"))
end

-- Without its blocks a model has no map from the width of one input to that of the next.
function test.blocks_of_other_widths_without_skip_connections()
    local path = program.model(
        folder,
        "widening",
        "return { name = 'widening', d = 32, heads = 4, vocab = 50, norm = { kind = 'rmsnorm' }, \z
            attention = { context = 64 }, embedding = {}, output = { head = {} }, layers = { { d = 128, d_in = 16 }, \z
            { d_in = 128, ffn = { kind = 'lookup', h = 4, tau = 4 } } }, \z
            ffn = { kind = 'glu', f = 64, activation = 'silu' } }"
    )
    local found = json.decode(program.works(bench(path, "--lengths", "8", "--json")))
    is_stages(found.results[1].stages)
end

function test.what_cannot_be_timed()
    local path = encoder "refused"
    program.refuses(2, '--lengths: "41": must be integers from 1 to the context, 40', bench(path, "--lengths", "8,41"))
    program.refuses(2, '--lengths: "": must be integers from 1 to the context, 40', bench(path, "--lengths", "8,"))
    program.refuses(2, "--batch: 8: is for blocks and FFNs; whole models take --lengths", bench(path, "--batch", "8"))
    program.refuses(2, "--threads: 0: must be an integer from 1 to 1024", bench(path, "--threads", "0"))
    program.refuses(
        2,
        "--lengths: 8: is for a whole model, not for a LookupFFN",
        bench("gen/models/tiny.lua", "--lengths", "8")
    )
end

local gated =
    "layers = 3, d = 32, heads = 4, kv_heads = 2, attention = { eliminate = 'QP', rope = {}, context = 40 }, ffn = { \z
        kind = 'glu', f = 48, activation = 'silu' }"

local both = gated:gsub("rope = {}", "causal = false")

local function bench_blocks(path, ...) return { "bench", path, "--cflags", "-O0", "--repetitions", "1", ... } end

local function positive(r, keys)
    for key in keys:gmatch "%S+" do
        if not (math.type(r[key]) and r[key] > 0 and r[key] < 1e9) then error(key .. ": " .. tostring(r[key])) end
    end
end

function test.blocks_for_machines()
    local found = json.decode(
        program.works(bench_blocks(
            blocks("timed", gated),
            "--isa",
            "scalar",
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
            check.matches(rival.implementation, "^[%w_:, ]+$")
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
        check.equal({ type(r.counts), type(r.baseline_implementation) }, { "boolean", "string" })
        check.near(r.speedup, r.baseline_us_per_token / r.us_per_token, 1e-6 * r.speedup)
    end
    check.equal(attention, { "1 39", "7 0", "1 39", "7 0" }) -- of each type of the cache
end

function test.blocks_for_people()
    local text = program.works(bench_blocks(blocks("shown", gated), "--type", "bf16", "--isa", "scalar"))
    check.matches(text, "^shown on [^\n]*one thread: one of 3 blocks\nisa     weights tokens ")
    check.matches(text, "\nscalar  bf16         1 +[%d.]+ +[%d.]+ +[%d.]+ +1%.364 +[%d.]+ +%d+ %% ")
    check.matches(text, "\nscalar  bf16        40 +[%d.]+ +[%d.]+ +[%d.]+ +1%.364 +%- +%- ")
    check.matches(text, "\nits products alone\nisa     weights tokens ")
    check.matches(text, "\nscalar  bf16         1 +[%d.]+ +[%d.]+ +[%d.]+ %l+ %l+%d+ [%w_]+ +[%d.]+ +%d.%de.%d+ ")
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
    for _, name in ipairs(effort.some("transformers", { "none", "own", "wide" }, 1)) do
        local found = json.decode(program.works(bench_blocks(blocks(name, models[name]), "--batch", "1,6", "--json")))
        check.equal(
            { #found.results, #found.attention, found.results[1].unfused_us_per_token == nil },
            { 2, 2, name == "none" }
        )
    end
end

-- Tokens that attend to all others have no positions: they are encoded in one call, and so they are by the baselines.
function test.blocks_of_encoders()
    local models = { both = both, near = both:gsub("causal", "window = 3, causal") }
    for _, name in ipairs(effort.some("transformers", { "near", "both" }, 1)) do
        local text = models[name]
        local found = json.decode(program.works(bench_blocks(blocks(name, text), "--batch", "1,7,40", "--json")))
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

-- PART=TYPE belongs to the word of a list that stands before it.
function test.lists_of_types_have_types_of_parts()
    local list = combinations.of_blocks { type = "f32,i4,head=i8,i8,head=f16", activations = "i8,f32" }
    for i, one in ipairs(list) do
        list[i] = one.type .. " " .. one.activations
    end
    check.equal(table.concat(list, "; "), "f32 f32; i4,head=i8 i8; i4,head=i8 f32; i8,head=f16 f32")
end

function test.which_blocks_cannot_be_timed()
    local path = blocks("refused", gated)
    program.refuses(
        2,
        "--batch: 8: from position 33 on must be at most attention.context = 40",
        bench_blocks(path, "--batch", "8", "--position", "33")
    )
    program.refuses(
        2,
        '--type: "f64": must be one of ' .. table.concat(dtype.type_names, ", "),
        bench_blocks(path, "--type", "f32,f64")
    )
    program.refuses(2, '--type: "i8": given twice', bench_blocks(path, "--type", "i8,i8"))
    program.refuses(
        2,
        "--position: 3: must be 0 where both has causal = false",
        bench_blocks(blocks("both", both), "--position", "3")
    )
end

local attention = "templates/model/blocks/attention.c"
local product = "templates/model/blocks/product.c"

function test.wrong_models_are_not_timed()
    local of_blocks = bench_blocks(blocks("wrong", gated), "--isa", "scalar", "--batch", "1")
    local error_text = ": relative error [^\n]*: nothing was timed\n$"
    local in_blocks = "wrong.lua: the scalar blocks fail verification: decode" .. error_text
    local cases = {
        { attention, 'or "seen");', 'or "seen + 1");', of_blocks, in_blocks },
        { product, 'isa.add("sums", "offsets")', 'isa.mul("sums", "offsets")', of_blocks, in_blocks },
    }
    for _, case in ipairs(cases) do
        program.changed(case[1], case[2], case[3])
    end
    cases = effort.some("planted", cases, 1)
    local of_whole = bench(encoder "wrong_encoder", "--lengths", "8")
    local in_whole = "wrong_encoder.lua: wrong_encoder fails verification: encode" .. error_text
    cases[#cases + 1] = { product, 'isa.add("sums", "offsets")', 'isa.mul("sums", "offsets")', of_whole, in_whole }
    for _, case in ipairs(cases) do
        local path, from, to, words, message = table.unpack(case)
        local result = program.run { "--tree", program.changed_tree(path, from, to), table.unpack(words) }
        check.equal({ result.status, result.output }, { 1, "" })
        check.matches(result.errors, message)
    end
end

return test
