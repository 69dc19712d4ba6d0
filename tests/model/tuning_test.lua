-- tune takes whole models: it times the blocks that have most weights as a transformer; its choices are the model's.
local check = require "tests.support.check"
local host = require "host"
local model_file = require "gen.families.model_file"
local program = require "tests.support.program"
local request = require "gen.bundle.request"
local isa = require "gen.isa.list"
local tuning = require("harness.families.model.tuning").whole

local test = {}
local folder = program.folder()
local store = { env = { LOOKUPC_STORE = folder .. "/store.sqlite" } }
-- Where a tuning has the times that tests/support/measured.lua makes up.
local quiet = program.quiet_tree()

-- A tuning of all values of some choices of portable C that compiles quickly.
local function tune(path, tuned, ...)
    local words = { "--tree", quiet, "tune", path, "--isa", "scalar", "--cflags", "-O0", "-o", tuned, "--exhaustive" }
    local more = { "--time", "100s", ... }
    local result = program.run(table.move(more, 1, #more, #words + 1, words), store)
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
    local tuned, bundle = folder .. "/together.lua", folder .. "/bundle"
    local text = tune(listed, tuned, "--batch", "60", "--choices", "attention.rows")
    check.matches(text, "\n  timed: %d of its 6 blocks\n")
    local file = assert(host.read(tuned))
    check.matches(file, "tuned by lookupc for calls of 60 tokens")
    check.matches(file, '%["chunk.tokens"%] = 768, %-%- default')
    program.works { "emit", listed, "--isa", "scalar", "--tuned", tuned, "-o", bundle }
    local rows = file:match '%["attention.rows"%] = (%d+), %-%- 1.11x the speed of the default'
    check.matches(assert(host.read(bundle .. "/listed__scalar.c")), "attention.rows=" .. rows)
    program.refuses(
        2,
        "--batch: 481: must be at most 480, the sequences of listed that go",
        { "tune", listed, "--isa", "scalar", "-o", tuned, "--batch", "481" }
    )
end

function test.types_of_lookup_ffns_are_no_matter_of_other_blocks()
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
    local tuned = folder .. "/mixed_tuned.lua"
    tune(mixed, tuned, "--batch", "9", "--choices", "attention.rows", "--tables", "i8", "--projection", "i8")
    local words = { "emit", mixed, "--isa", "scalar", "--tables", "i8", "--projection", "i8", "--tuned", tuned }
    words[#words + 1], words[#words + 2] = "-o", folder .. "/mixed_bundle"
    program.works(words)
end

function test.what_cannot_be_tuned()
    local function words(...) return { "tune", listed, "--time", "0", "-o", folder .. "/no.lua", ... } end
    program.refuses(2, "--threads: 2: blocks of whole models are tuned for one thread", words("--threads", "2"))
    program.refuses(2, "--weights: w: is not for whole models", words("--weights", "w"))
end

return test
