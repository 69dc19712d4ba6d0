-- A tuning takes at most its time, whatever its steps take; the clock of these tests is simulated.
local budget = require "harness.tune.budget"
local check = require "tests.support.check"
local families = require "gen.families.list"
local harness = require "harness.families.list"
local instruction_set = require "harness.tune.instruction_set"
local isa = require "gen.isa.list"
local measure = require "harness.measure.measure"
local model_file = require "gen.families.model_file"
local program = require "tests.support.program"
local race = require "harness.tune.race"
local records = require "tests.support.records"

local test = {}

race.rules.resamples = 50

local tiny = model_file.load "gen/models/tiny.lua"

function test.candidates_are_as_many_as_the_time_is_enough_for()
    for _, build in ipairs { 0, 0.1, 3 } do
        for _, sample in ipairs { 0.02, 0.3 } do
            local costs, before = { build = build, sample = sample, listed = 50 }, 0
            for seconds = 0, 900, 7 do
                local count = budget.candidates(costs, seconds)
                check.equal(count >= before and count <= 50, true)
                if count > 0 then check.equal(budget.seconds(costs, count) <= seconds, true) end
                before = count
            end
            check.equal(budget.candidates(costs, budget.enough(costs)), 50)
            check.equal(budget.candidates(costs, 0), 0)
        end
    end
    check.equal(budget.candidates({ build = 1, sample = 1, listed = 0 }, 1e6), 0)
end

-- With costs of roberta_small on two cores that nothing else uses. They are no measurements of such a machine: `build`
-- is the measured CPU time of compiling and verifying (docs/decisions.md) halved, with some of it to spare; the
-- others are wall times of a busy machine scaled down by hand.
function test.sixty_candidates_of_each_race_fit_into_two_minutes()
    local list = {
        { costs = { build = 0.25, sample = 0.055, start = 0.35, prove = 0.5, listed = 399 } },
        { costs = { build = 0.17, sample = 0.02, start = 0.2, prove = 0.3, listed = 399 } },
    }
    for i, count in ipairs(budget.all(list, 120 - 30)) do
        if count < 60 then error(string.format("race %d: %d candidates", i, count)) end
    end
end

function test.what_is_too_little_for_each_race_goes_to_the_first()
    local costs = { build = 0.5, sample = 0.1, listed = 40 }
    local list = { { costs = costs }, { costs = costs } }
    local least = budget.seconds(costs, 1)
    check.equal(budget.all(list, 0.9 * least), { 0, 0 })
    check.equal(budget.all(list, 1.1 * least), { 1, 0 })
    check.equal(budget.all(list, 2 * least + 0.001), { 1, 1 })
    check.equal(budget.all(list, 2 * budget.enough(costs)), { 40, 40 })
    check.equal((budget.first(list, 1.1 * least)), 1.1 * least)
end

function test.the_line_says_what_the_time_lets_try_and_what_is_recommended()
    local list = {
        { regime = "many", costs = { listed = 40 } },
        { regime = "few", costs = { listed = 12 } },
    }
    check.equal(
        budget.line(list, { 7, 12 }, 60, 340),
        "60s: time for about 7 of 40 candidates for many tokens and 12 of 12 candidates for few tokens; "
            .. "--time 6m is recommended, for all of them"
    )
    check.equal(
        budget.line(list, { 40, 12 }, 300, 100),
        "5m: time for about 40 of 40 candidates for many tokens and 12 of 12 candidates for few tokens"
    )
    for _, counts in ipairs { false, { 0, 0 } } do
        check.equal(
            budget.line(list, counts or nil, 1, 7201),
            "1s: no time for any candidate; --time 3h is recommended, for all of them"
        )
    end
    check.equal(
        budget.line(list, { 3, 0 }, 20, 340),
        "20s: time for about 3 of 40 candidates for many tokens and none of 12 candidates for few tokens; "
            .. "--time 6m is recommended, for all of them"
    )
    list[2].costs.listed = 0
    check.equal(budget.line(list, { 0, 0 }, 20, 340):match "^20s: no time for any candidate;" ~= nil, true)
    list[1].costs.listed = 0
    check.equal(budget.line(list, { 0, 0 }, 20, 21), "20s: there is no candidate beside the default")
end

-- A run on a machine with a clock of its own, on which compiling and verifying a candidate takes `build` seconds, a
-- sample `sample` times as long as it should, and a measuring process `start` seconds before it begins; with `quick`,
-- compilers hang after so many candidates; with `later`, all takes so many times as long once a race has begun. Other
-- candidates take nine tenths of the default's time. Whatever has a limit is ended by it. Returns the result, the
-- clock, what was announced, and the log.
local function simulated(o)
    local clock, noted = 0, {}
    local m, types = o.model or tiny, o.types or { "f32", "f32" }
    local options = { tables = types[1], projection = types[2] }
    local family, v = families.of(m), o.isa or isa.get "scalar"
    local hooks = setmetatable({}, { __index = harness.get(family.name).tuning })
    local function take(seconds, left)
        if #noted > 0 then seconds = seconds * (o.later or 1) end
        local taken = math.min(seconds, math.max(left or seconds, 0))
        clock = clock + taken
        return taken == seconds
    end
    local function choices(p) return family.space.text(p.variants[1].schedule) end
    local default = choices(family.build(m, { v }, options))
    function hooks.job(_, runners, batches, count, repetitions)
        local us = {}
        for i, runner in ipairs(runners) do
            us[i] = choices(runner.made.plan) == default and 10 or 9
        end
        return { us = us, batches = batches, count = count, repetitions = repetitions, seed = 1, calls = {} }
    end
    local shop, made = {}, 0
    function shop.make(_, plans, _, left)
        local list, stop = {}, left and clock + left
        for i, p in ipairs(plans) do
            made = made + 1
            if take(made > (o.quick or math.huge) and 1000 or o.build, stop and stop - clock) then
                list[i] = { plan = p, library = "library", bytes = 1000, seconds = o.build, verifying = o.build / 2 }
            else
                list[i] = { plan = p, late = true }
            end
        end
        return list
    end
    function shop.prove(_, _, _, left) return take(o.build, left) and { false } or nil end
    local s = {
        model = m,
        isa = v,
        cc = "gcc",
        version = "gcc",
        cflags = "-O2",
        threads = 1,
        family = family,
        tuning = hooks,
        options = options,
        types = types,
        batches = { 1, 64 },
        batches_text = "1,64",
        seed = 1,
        caches = { l1d = 32768, l1i = 32768, l2 = 1 << 20, l3 = 16 << 20 },
        sweep_bytes = 8 << 20,
        host = "host",
        run = "run",
        known = {},
        shard = { i = 1, n = 1, text = "1/1" },
        choices = not o.whole and { many = { "gather.unroll", "gather.group" }, few = { "few.tokens" } } or nil,
        key = records.key(),
        shop = shop,
        now = function() return clock end,
        show = function() end,
        note = function(text) noted[#noted + 1] = text end,
    }
    s.schedules = family.space
    s.measure = function(...) return measure.run(...) end
    local original, logged = measure.run, 0
    s.keep = function() logged = logged + 1 end
    measure.run = function(job, options)
        local conditions = hooks.conditions
        local samples, seconds = {}, o.start
        local function add(name, us, repetitions)
            local sample = { cpu = {}, wall = {}, share = {} }
            for r = 1, repetitions do
                sample.cpu[r], sample.wall[r], sample.share[r] = us * (1 + 0.001 * r), us * (1 + 0.001 * r), 1
            end
            samples[name] = sample
            seconds = seconds + repetitions * o.sample * math.max(0.02, us * 1e-6)
        end
        for _, batch in ipairs(job.batches) do
            for i, us in ipairs(job.us) do
                for c = 1, job.count do
                    local condition = conditions[c]
                    local name = string.format("ffn/r%d/%d/%s_%s", i, batch, condition.codes, condition.tables)
                    add(name, batch * us, (job.repetitions - c) // job.count + 1)
                end
            end
        end
        for _, call in ipairs(job.calls) do
            add(call.name, 1e6 * o.dense, job.repetitions)
        end
        local context = { whole_seconds = seconds, timed_seconds = seconds - o.start }
        return take(seconds, options.left) and samples or nil, context
    end
    local run = { now = s.now, start = 0, seconds = o.seconds, added = 0, units = 1, all_units = 1 }
    -- Packing, which ends the run where it takes longer than it may.
    function run.prepare(left)
        if not take(o.pack or 0, left) then error("packed too long", 0) end
    end
    local good, list, result = pcall(instruction_set.tune, run, { s })
    measure.run = original
    if not good and list ~= "packed too long" then error(list, 0) end
    return good and result, clock, noted, logged
end

function test.a_tuning_takes_at_most_its_time()
    local tried, confirmed, ended = 0, 0, 0
    for _, seconds in ipairs { 0.01, 5, 30, 60, 240 } do
        for _, machine in ipairs {
            { build = 0.2, sample = 1, start = 0.1, dense = 0.01 },
            { build = 5, sample = 1, start = 0.1, dense = 0.01 }, -- a slow compiler
            { build = 0.2, sample = 8, start = 2, dense = 0.01 }, -- other work shares the core
            { build = 0.2, sample = 1, start = 0.1, dense = 20 }, -- a large dense FFN
            { build = 1e6, sample = 1, start = 0.1, dense = 0.01 }, -- a compiler that hangs
            { build = 0.2, sample = 1e6, start = 0.1, dense = 0.01 }, -- a kernel that hangs
            { build = 0.2, sample = 1, start = 0.1, dense = 0.01, pack = 4 }, -- large weights
            { build = 0.2, sample = 1, start = 0.1, dense = 0.01, pack = 40 },
        } do
            machine.seconds = seconds
            local result, clock, noted, logged = simulated(machine)
            if clock > seconds then error(string.format("%g s took %g s", seconds, clock)) end
            if not result then
                check.equal({ #noted, logged, machine.pack + 1 > seconds }, { 0, 0, true })
                ended = ended + 1
            else
                check.equal(#noted, 1)
                check.matches(noted[1], "^%d+[sm]: n?o? ?time for [^;]*candidate")
                for _, r in ipairs(result.races) do
                    if r.field then tried = tried + 1 end
                end
                if result.rows then confirmed = confirmed + 1 end
                -- what has no end leaves the default
                if not result.rows then check.equal(result.schedule, result.default) end
                if result.late then check.equal(logged > 0, true) end
            end
        end
    end
    check.equal(tried >= 10 and confirmed >= 5 and ended >= 2, true)
end

-- Where other work leaves time for a candidate or two, these are raced to a decision, which is confirmed; also if all
-- takes half as long again as it did when the candidates were counted.
function test.a_busy_machine_decides_between_fewer_candidates()
    for _, machine in ipairs {
        { build = 0.2, sample = 1, later = 2 },
        { build = 0.2, sample = 16 },
        { build = 0.2, sample = 16, later = 1.5 },
        { build = 3, sample = 8, later = 1.5 },
        { build = 3, sample = 16 },
        { build = 6, sample = 1 },
        { build = 6, sample = 8 },
    } do
        machine.seconds, machine.start, machine.dense = 120, 1, 0.01
        local result, _, noted = simulated(machine)
        local decided = result.races[1].decided
        if not (result.rows and (decided == "winner" or decided == "tie") and result.schedule ~= result.default) then
            local form = "build %g, sample %g, later %g: %s, %s"
            error(form:format(machine.build, machine.sample, machine.later or 1, noted[1], decided))
        end
    end
end

-- Which time is recommended does not depend on the time that is given, but for what is not known without measuring.
function test.the_recommended_time_is_about_the_same()
    local function recommended(seconds)
        local _, _, noted = simulated { seconds = seconds, build = 0.2, sample = 1, start = 0.1, dense = 0.01 }
        check.matches(noted[1], "is recommended")
        local number, unit = noted[1]:match "%-%-time (%d+)(%a) is recommended"
        return tonumber(number) * ({ s = 1, m = 60, h = 3600 })[unit]
    end
    local known, guessed = recommended(8), recommended(0.01)
    if guessed > 3 * known or known > 3 * guessed then error(string.format("%g s and %g s", known, guessed)) end
end

-- The default wins no race in which nothing else had time.
function test.a_race_of_the_default_alone_had_no_time()
    local result = simulated { seconds = 60, build = 0.2, sample = 1, start = 0.1, dense = 0.01, quick = 4 }
    for _, r in ipairs(result.races) do
        check.equal({ r.decided, r.field }, { "no time" })
    end
end

-- Where rows of i8 are summed as integers, sixteen tables may be written out in one step, elsewhere eight.
function test.a_whole_space_of_another_type_is_tuned()
    local path = program.model(
        program.folder(),
        "wide",
        'return { name = "wide", d = 16, h = 16, tau = 2, projection = { kind = "dense" }, score = "gelu" }'
    )
    local result, clock = simulated {
        model = model_file.load(path),
        types = { "i8", "f32" },
        isa = isa.get "avx512",
        whole = true,
        seconds = 120,
        build = 0.2,
        sample = 1,
        start = 0.1,
        dense = 0.01,
    }
    check.equal({ #result.races, result.threshold ~= nil, clock <= 120 }, { 2, true, true })
end

return test
