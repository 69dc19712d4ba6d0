-- Rounds hand out slices in turns, repeat what was disturbed, and give one time a repetition.
local check = require "tests.support.check"
local rounds = require "harness.measure.rounds"

local test = {}

local function job_of(own)
    local job = { min_time = 0.01, slices = 4, repetitions = 2, order_seed = 3, draw_order = false, calls = {} }
    for key, value in pairs(own) do
        job[key] = value
    end
    return job
end

-- An engine whose calls take what `seconds(one, number of the slice)` says; `lists`: what was asked for.
local function engine_of(seconds)
    local engine, count = { lists = {}, show = function() end, now = function() return 0 end }, 0
    function engine.slices(list)
        local slices = {}
        engine.lists[#engine.lists + 1] = list
        for i, one in ipairs(list) do
            count = count + 1
            local cpu, wall = seconds(one, count)
            slices[i] = { cpu = cpu, wall = wall or cpu }
        end
        return slices
    end
    return engine
end

local function names_of(list)
    local names = {}
    for i, one in ipairs(list) do
        names[i] = one.call.name
    end
    return table.concat(names)
end

function test.calls_that_are_alike_rotate_and_are_made_equally_often()
    local calls = { { name = "a", alike = "x" }, { name = "b", alike = "x" }, { name = "c" } }
    local engine = engine_of(function(one) return one.call.name == "c" and 1 or 1e-5 end)
    local samples = rounds.run(job_of { calls = calls }, engine)
    check.equal(#engine.lists, 3) -- once, what is short again, and all of the rest
    check.equal(names_of(engine.lists[3]), "abbaabbac" .. "abbaabbac")
    for _, one in ipairs(engine.lists[3]) do
        check.equal(one.iterations, one.call.name == "c" and 1 or 250)
        check.equal(one.warm, one.call.name ~= "c")
    end
    check.equal(#samples, 6)
    check.near(samples[1].cpu_us, 10, 1e-9)
end

function test.a_disturbed_slice_is_made_again_and_the_lower_quartile_counts()
    local function seconds(one, number)
        if one.pause then return 4e-5 end
        -- of four slices the third one has half of the core
        return 1e-5 * math.max(1, number - 2), number == 5 and 6e-5 or nil
    end
    local engine = engine_of(seconds)
    local samples = rounds.run(job_of { calls = { { name = "a" } }, repetitions = 1 }, engine)
    check.equal(#engine.lists, 4)
    check.equal({ #engine.lists[4], engine.lists[4][1].pause }, { 1, true })
    check.near(samples[1].cpu_us, 17.5, 1e-9) -- of 10, 20, 40 and 40
end

function test.turns_cold_calls_and_long_ones()
    local calls = {
        { name = "a", turn = 0, turns = 2 },
        { name = "b", turn = 1, turns = 2, cold = true },
        { name = "c" },
    }
    local engine = engine_of(function(one) return one.call.name == "c" and 0.6 or 1e-5 end)
    local samples = rounds.run(job_of { calls = calls, slices = 0, repetitions = 5 }, engine)
    local counts = {}
    for _, sample in ipairs(samples) do
        counts[sample.name] = (counts[sample.name] or 0) + 1
    end
    check.equal(counts, { a = 3, b = 2, c = 3 })
    for _, one in ipairs(engine.lists[3]) do
        check.equal(one.warm, one.call.name == "a")
    end
end

function test.an_order_is_drawn_from_the_seed()
    local calls = {}
    for i = 1, 9 do
        calls[i] = { name = tostring(i), alike = "x" }
    end
    local function order_of(seed)
        local engine = engine_of(function() return 1 end)
        rounds.run(job_of { calls = calls, draw_order = true, order_seed = seed }, engine)
        return names_of(engine.lists[2])
    end
    check.equal(order_of(1), order_of(1))
    check.equal(order_of(1) ~= order_of(2), true)
    check.equal(order_of(1):sub(1, 9) ~= order_of(1):sub(10), true)
end

return test
