-- tune of models: candidates are verified, timed and chosen; the tuned file is taken by emit, verify and bench; what is
-- wrong is never timed. Of whole models it times the blocks that have most weights as a transformer.
local check = require "tests.support.check"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local log = require "harness.tune.log"
local model_file = require "gen.families.model_file"
local program = require "tests.support.program"
local request = require "gen.request.request"
local space = require "gen.families.model.blocks.schedule"
local tuning = require("harness.families.model.tuning").whole

local test = {}
-- Where a tuning has the times that tests/support/measured.lua makes up.
local quiet = program.quiet_tree()
local model =
    "return { name = 'm', d = 64, heads = 4, kv_heads = 2, layers = 2, vocab = 300, attention = { eliminate = 'QP', \z
        rope = {}, context = 64 }, ffn = { kind = 'glu', f = 96, activation = 'silu' } }"

-- Such a place with the model.
local function new_place()
    local place = program.tuning_place()
    place.model = program.model(place.folder, "m", model)
    return place
end

-- All candidates of portable C that compiles quickly.
local function tune(tree, place, path, ...)
    local words = { "--tree", tree, "tune", path, "-o", place.tuned, "--isa", "scalar", "--cflags", "-O0", ... }
    return program.run(words, { env = place.env })
end

function test.a_tuned_file_is_found_and_taken()
    local place = new_place()
    program.works { "sample", place.model, "-o", place.folder .. "/given.safetensors" }
    local result = tune(
        quiet,
        place,
        place.model,
        "--time",
        "100s",
        "--exhaustive",
        "--batch",
        "1,9",
        "--choices",
        "few.vectors,attention.sums",
        "--cache",
        "f16",
        "--weights",
        place.folder .. "/given.safetensors",
        "--json"
    )
    if result.status ~= 0 then error(result.errors, 0) end
    local set = json.decode(result.output).sets[1]
    check.equal({ #set.races, #set.results, set.results[1].batch, set.results[2].batch }, { 2, 2, 1, 9 })
    for _, row in ipairs(set.results) do
        assert(row.default_us > 0 and row.tuned_us > 0 and not row.dense_us)
    end
    local fields = {}
    for _, r in ipairs((log.read(place.log))) do
        -- of a transformer the types of weights and cache
        check.equal({ r.key.tables, r.key.projection }, { "f32", "f16" })
        if r.status == "entered" then fields[r.regime] = #r.field end
    end
    assert(fields.few >= 2 and fields.many >= 2, "the default and others were compiled and verified in each race")

    local chosen = space.parse(set.schedule)
    program.works {
        "emit",
        place.model,
        "--isa",
        set.isa,
        "--cache",
        "f16",
        "--tuned",
        place.tuned,
        "-o",
        place.folder .. "/bundle",
    }
    check.equal(
        json.decode(assert(host.read(place.folder .. "/bundle/MANIFEST.json"))).options.schedule,
        { [set.isa] = chosen }
    )
    local words = { "verify", place.model, "--isa", set.isa, "--cache", "f16", "--tuned", place.tuned }
    words[#words + 1], words[#words + 2] = "--cflags", "-O0"
    program.works(words)
    program.refuses(
        1,
        'cache = "f16": the command asks for f32: give --cache f16, or tune again',
        { "emit", place.model, "--isa", set.isa, "--tuned", place.tuned, "-o", place.folder .. "/never" }
    )
    program.refuses(1, "type: required key is missing for m", {
        "emit",
        place.model,
        "--isa",
        set.isa,
        "--tuned",
        program.model(
            place.folder,
            "other",
            assert(host.read(place.tuned)):gsub("type = .-, cache = .-,", 'tables = "f32",')
        ),
        "-o",
        place.folder .. "/never",
    })
    local again = tune(quiet, place, place.model, "--time", "0", "--batch", "1,9", "--cache", "f16")
    check.matches(again.output, "from the store, nothing measured")
end

function test.encoders_are_tuned()
    local place = new_place()
    local path = program.model(place.folder, "both", (model:gsub("rope = {}", "causal = false")))
    local result = tune(
        quiet,
        place,
        path,
        "--time",
        "100s",
        "--exhaustive",
        "--batch",
        "1,9",
        "--choices",
        "few.vectors,attention.sums",
        "--json"
    )
    if result.status ~= 0 then error(result.errors, 0) end
    local set = json.decode(result.output).sets[1]
    check.equal({ set.results[1].batch, set.results[2].batch }, { 1, 9 })
    program.works { "verify", path, "--isa", set.isa, "--tuned", place.tuned, "--cflags", "-O0" }
    program.refuses(
        2,
        "--batch: 65: must be at most attention.context = 64",
        { "tune", path, "--batch", "65", "-o", place.tuned }
    )
end

-- A copy of what the program is made of in which a token alone leaves out its first input, if others are unrolled: not
-- by default.
function test.wrong_candidates_are_not_timed()
    local place, tree = new_place(), program.quiet_tree()
    local path = tree .. "/templates/model/blocks/product_kernel.c"
    local text = assert(host.read(path))
    local changed = text:gsub("    size_t k = 0; //", "    size_t k = 1; //", 1)
    assert(changed ~= text)
    assert(host.write_file(path, changed))
    local result = tune(
        tree,
        place,
        place.model,
        "--time",
        "100s",
        "--exhaustive",
        "--batch",
        "1",
        "--choices",
        "few.unroll"
    )
    if result.status ~= 0 then error(result.errors, 0) end
    local rejected = 0
    for _, r in ipairs((log.read(place.log))) do
        local wrong = space.parse(r.candidate)["few.unroll"] > 1
        if r.status == "rejected" then
            rejected = rejected + 1
            check.matches(r.reason, "verify: decode: relative error")
            assert(wrong)
        end
        assert(r.status ~= "ok" or not wrong)
    end
    check.equal(rejected, 3)
end

local whole = new_place()
local folder = whole.folder

-- A tuning of a whole model, of all values of some choices; returns what it prints.
local function tune_whole(path, ...)
    local result = tune(quiet, whole, path, "--time", "100s", "--exhaustive", ...)
    check.equal(result.status, 0, result.errors)
    return result.output
end

local listed = program.model(
    folder,
    "listed",
    [[
return { name = "listed", d = 48, heads = 3, vocab = 67, skip = true, positions = 40, norm = { kind = "layernorm" },
    layers = { { d = 32, heads = 2, count = 2 }, { d_in = 32 }, { count = 3, ffn = { kind = "lookup", h = 8, tau = 4,
    projection = { kind = "dense" }, score = "gelu" } } }, attention = { context = 40, causal = false },
    ffn = { kind = "mlp", f = 64, activation = "gelu" }, embedding = {}, output = { pool = "mean" },
    checkpoint = "roberta" }
]]
)

function test.the_heaviest_blocks_are_timed()
    local options = { threads = 1 }
    local p = request.plan(listed, { isa.get "scalar" }, options)
    local sample, family =
        tuning.sample(model_file.load(listed), p, { l3 = 1 << 20, l2 = 1 << 20, l1d = 1 << 15 }, options)
    check.equal({ family.name, sample.d, sample.d_in, sample.ffn.kind }, { "transformer", 48, nil, "lookup" })
    check.equal(tuning.count(p.model), 6)
end

-- Blocks are timed as the model calls them: with several sequences, and so with the model's own chunks. What is chosen
-- is the model's.
function test.sequences_of_an_encoder_are_timed_together()
    local tuned, bundle = whole.tuned, folder .. "/bundle"
    local text = tune_whole(listed, "--batch", "60", "--choices", "attention.sums")
    check.matches(text, "\n  timed: %d of its 6 blocks\n")
    local file = assert(host.read(tuned))
    check.matches(file, "tuned by lookupc for calls of 60 tokens")
    check.matches(file, '%["chunk.tokens"%] = 768, %-%- default')
    program.works { "emit", listed, "--isa", "scalar", "--tuned", tuned, "-o", bundle }
    local sums = file:match '%["attention.sums"%] = (%d+), %-%- 1.11x the speed of the default'
    check.matches(assert(host.read(bundle .. "/listed__scalar.c")), "attention.sums=" .. sums)
    program.refuses(
        2,
        "--batch: 481: must be at most 480, the sequences of listed that go",
        { "tune", listed, "--isa", "scalar", "-o", tuned, "--batch", "481" }
    )
end

function test.types_of_other_parts_are_no_matter_of_the_tuned_blocks()
    local mixed = program.model(
        folder,
        "mixed",
        [[
return { name = "mixed", d = 64, heads = 2, vocab = 67, skip = true, norm = { kind = "layernorm" },
    layers = { { ffn = { kind = "mlp", f = 256, activation = "gelu" } }, { count = 1 } },
    attention = { context = 16, causal = true }, embedding = {}, output = { head = {} },
    ffn = { kind = "lookup", h = 4, tau = 4, projection = { kind = "dense" }, score = "gelu" } }
]]
    )
    local tuned = whole.tuned
    local types = { "--tables", "i8", "--projection", "i8", "--type", "bf16,head=f16" }
    tune_whole(mixed, "--batch", "9", "--choices", "attention.sums", table.unpack(types))
    local words = { "emit", mixed, "--isa", "scalar", "--tuned", tuned, "-o", folder .. "/mixed_bundle" }
    program.works(program.with(words, table.unpack(types)))
end

function test.which_whole_models_cannot_be_tuned()
    local function words(...) return { "tune", listed, "--time", "0", "-o", folder .. "/no.lua", ... } end
    program.refuses(2, "--threads: 2: blocks of whole models are tuned for one thread", words("--threads", "2"))
    program.refuses(2, "--weights: w: is not for whole models", words("--weights", "w"))
end

return test
