-- How calls take turns: with an engine whose clock and times are made up.
local check = require "tests.support.check"
local rounds = require "harness.measure.rounds"

local test = {}

-- An engine in which a call of a row takes row.us, and what it was asked for.
local function engine_of(change)
    local engine, clock = { asked = {}, lists = 0 }, 0
    function engine.now() return clock end
    function engine.show() end
    function engine.slices(list)
        local times = {}
        engine.lists = engine.lists + 1
        for i, s in ipairs(list) do
            local wall = 1e-6 * s.call.us
            local time = change and change(s, #engine.asked) or { cpu = wall, wall = wall }
            time.whole = s.call.cold and s.iterations * (wall + 1e-3) or nil
            clock = clock + (s.iterations + (s.warm and 1 or 0)) * wall
            engine.asked[#engine.asked + 1], times[i] = s, time
        end
        return times
    end
    return engine
end

local function job_of(more)
    local job = {
        min_time = 0.01,
        slices = 4,
        repetitions = 6,
        order_seed = 5,
        calls = {
            { name = "a", us = 10, alike = "few" },
            { name = "b", us = 20, alike = "few" },
            { name = "c", us = 500, turn = 1, turns = 2 },
            { name = "d", us = 30000 },
        },
    }
    for key, value in pairs(more or {}) do
        job[key] = value
    end
    return job
end

-- The slices of the repetitions, in order: names, by repetition.
local function orders(engine)
    local list = {}
    for _, s in ipairs(engine.asked) do
        if s.repetition then
            list[s.repetition + 1] = (list[s.repetition + 1] or "") .. s.call.name
        end
    end
    return list
end

function test.slices_take_turns()
    local engine = engine_of()
    local samples = rounds.run(job_of(), engine)
    local counts = {}
    for _, sample in ipairs(samples) do
        counts[sample.name] = (counts[sample.name] or 0) + 1
    end
    check.equal(counts, { a = 6, b = 6, c = 3, d = 6 })
    for i, order in ipairs(orders(engine)) do
        local few = order:gsub("[cd]", "")
        check.equal(few == "abbaabba" or few == "baabbaab", true)
        check.equal({ select(2, order:gsub("c", "")), select(2, order:gsub("d", "")) }, { i % 2 == 0 and 4 or 0, 1 })
    end
    -- calls that are alike are made equally often, in slices of about the time that was asked for
    local a
    for _, s in ipairs(engine.asked) do
        if s.repetition and s.call.name == "a" then a = s.iterations end
    end
    for _, s in ipairs(engine.asked) do
        if s.repetition and s.call.name == "b" then check.equal(s.iterations, a) end
    end
    check.near(a * 10e-6 * 4, 0.01, 0.003)
end

function test.the_order_depends_on_the_seed_alone()
    local function drawn(seed)
        local engine = engine_of()
        rounds.run(job_of { order_seed = seed }, engine)
        return orders(engine)
    end
    check.equal(drawn(5), drawn(5))
    check.equal(table.concat(drawn(5)) ~= table.concat(drawn(6)), true)
    local listed = drawn(false)
    for i, order in ipairs(listed) do
        check.equal(order, i % 2 == 0 and "abbaabbaccccd" or "abbaabbad")
    end
end

function test.a_disturbed_slice_is_timed_again_once()
    local disturbed = 0
    local engine = engine_of(function(s)
        if s.repetition == 2 and s.call.name == "a" and not s.pause then
            disturbed = disturbed + 1
            return { cpu = 20e-6, wall = 30e-6 }
        end
    end)
    local samples, again = rounds.run(job_of(), engine), 0
    for _, s in ipairs(engine.asked) do
        again = again + (s.pause and 1 or 0)
    end
    check.equal({ disturbed, again }, { 4, 4 })
    for _, sample in ipairs(samples) do
        if sample.name == "a" then check.near(sample.cpu_us, 10, 1e-9) end
    end
end

function test.of_two_disturbed_times_the_calmer_counts()
    local engine = engine_of(function(s)
        if s.call.name == "a" and s.repetition then
            return s.pause and { cpu = 10e-6, wall = 40e-6 } or { cpu = 10e-6, wall = 12e-6 }
        end
    end)
    for _, sample in ipairs(rounds.run(job_of(), engine)) do
        if sample.name == "a" then check.near(sample.wall_us, 12, 1e-9) end
    end
end

function test.threads_are_not_timed_again()
    local function change(s) return s.repetition and { cpu = 1e-6, wall = 1e-3 } end
    for _, row in ipairs { { callers = 2 }, { threads = 2 } } do
        local engine = engine_of(change)
        row.name, row.us = "a", 10
        rounds.run(job_of { calls = { row } }, engine)
        for _, s in ipairs(engine.asked) do
            check.equal(s.pause, nil)
        end
    end
end

-- Of an engine to which each list takes its time.
function test.slices_are_made_at_once_where_nothing_is_decided_between()
    local engine, other = engine_of(), engine_of()
    engine.at_once = true
    local samples = rounds.run(job_of(), engine)
    check.equal(engine.lists, 3) -- once, what is short again, and all of the rest
    check.equal({ rounds.run(job_of(), other), other.lists }, { samples, 8 })
end

function test.long_calls_have_few_repetitions()
    local samples = rounds.run(job_of { slices = 0, calls = { { name = "long", us = 6e5 } } }, engine_of())
    check.equal(#samples, 3)
end

function test.what_empties_the_caches_counts_as_time()
    local engine = engine_of()
    rounds.run(job_of { calls = { { name = "cold", us = 10, cold = true } } }, engine)
    for _, s in ipairs(engine.asked) do
        check.equal({ s.warm, s.iterations <= 10 }, { false, true })
    end
end

return test
