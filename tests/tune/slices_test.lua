-- A job of the tuner gives one time a repetition for every runner, batch and condition, whatever slices it was timed
-- in.
local build = require "harness.tune.build"
local check = require "tests.support.check"
local harness = require "harness.families.list"
local isa = require "gen.isa.list"
local measure = require "harness.measure.measure"
local model_file = require "gen.families.model_file"
local packed = require "harness.families.lookup.packed"
local plan = require "gen.families.lookup.plan"
local program = require "tests.support.program"
local round = require "harness.tune.round"
local transformer = require("gen.families.model.family").blocks
local tuning = require "harness.families.lookup.tuning"

local test = {}
local tiny = model_file.load "gen/models/tiny.lua"

local function plan_of(choices) return plan.build(tiny, isa.select "scalar", { scalar = choices or {} }) end

function test.every_repetition_has_a_time_of_every_runner()
    local files = packed.make(plan_of(), program.folder(), { seed = 1 })
    local shop = build.new { cc = "gcc", version = "gcc", cflags = "-O1", threads = 1, seed = 1, files = files }
    -- different sizes of scratch: all runners share the largest
    local runners = {}
    for i, made in ipairs(shop:make({ plan_of(), plan_of { ["chunk.tokens"] = 64 } }, "many")) do
        check.equal(made.failure, nil)
        runners[i] = { made = made, regime = "many" }
    end
    runners[3] = runners[1]
    local t = { threads = 1, seed = 1, files = files, sweep_bytes = 1 << 20, tuning = tuning }
    local count, repetitions, batches = #tuning.conditions, 2 * #tuning.conditions, { 3, 300 }
    local job = round.job(t, runners, batches, count, repetitions, 5)
    check.equal(job.slices > 1, true)
    local samples, context = measure.run(job, {})
    check.equal(tonumber(context.timed_seconds) > 0, true)
    local names = 0
    for name, sample in pairs(samples) do
        names = names + 1
        check.equal({ name, #sample.cpu, #sample.wall, #sample.share }, { name, 2, 2, 2 })
        for r = 1, 2 do
            check.equal(sample.cpu[r] > 0 and sample.wall[r] > 0, true)
        end
    end
    check.equal(names, #runners * #batches * count)
    for i in ipairs(runners) do
        check.equal(#round.times(t, samples, i, 300, tuning.conditions[1]), 2)
    end
end

function test.every_repetition_of_blocks_has_a_time()
    local path = program.model(
        program.folder(),
        "blocks",
        "return { name = 'blocks', d = 32, heads = 2, layers = 1, vocab = 9, attention = { eliminate = 'QP', "
            .. "rope = {}, context = 16 }, ffn = { kind = 'mlp', f = 32, activation = 'gelu' } }"
    )
    local m, of_blocks = model_file.load(path), harness.get("transformer").tuning
    local p = transformer.build(m, { isa.get "scalar" }, {}, {})
    local files = of_blocks.prepare(p, program.folder(), { seed = 1, threads = 1, cflags = "-O0", cc = "gcc" })
    local shop = build.new { cc = "gcc", version = "gcc", cflags = "-O0", threads = 1, seed = 1, files = files }
    local made = shop:make({ p }, "many")[1]
    check.equal(made.failure, nil)
    local runner = { made = made, regime = "both" }
    local t = { threads = 1, seed = 1, files = files, sweep_bytes = 1 << 20, tuning = of_blocks }
    local samples, context = measure.run(round.job(t, { runner, runner }, { 1, 9 }, 1, 2, nil), {})
    check.equal(tonumber(context.timed_seconds) > 0, true)
    for i = 1, 2 do
        check.equal(#round.times(t, samples, i, 1, of_blocks.conditions[1]), 2)
        check.equal(#round.times(t, samples, i, 9, of_blocks.conditions[1]), 2)
    end
end

-- Halving leaves long calls to the finals.
function test.halving_times_calls_that_are_not_long()
    check.equal(round.screened { 1, 8, 64, 512, 1024 }, { 1, 8, 64, 512, 1024 })
    check.equal(round.screened { 512, 4096 }, { 512 })
    check.equal(round.screened { 4096, 65536 }, { 1024 })
end

return test
