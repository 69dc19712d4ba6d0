-- The statistics of the tuner: known values, and intervals that hold what they promise to hold.
local check = require "tests.support.check"
local statistics = require "harness.base.statistics"

local test = {}

-- Numbers around 0 with deviation 1: a sum of twelve.
local function normal(random)
    local sum = -6
    for _ = 1, 12 do
        sum = sum + random(1 << 30) / (1 << 30)
    end
    return sum
end

function test.random_numbers_are_those_of_splitmix64()
    local random = statistics.random(1234567)
    for _, expected in ipairs { 6457827717110365317, 3203168211198807973 } do
        check.equal(random(1 << 31), (expected >> 33) + 1)
    end
    local seen = {}
    for _ = 1, 200 do
        seen[random(3)] = true
    end
    check.equal(seen, { true, true, true })
end

function test.a_quartile_lies_between_the_values_around_it()
    local list = { 9, 1, 2, 3 }
    check.equal(statistics.quantile(list, 0.25), 1.75)
    check.equal(list, { 9, 1, 2, 3 })
    check.equal({ statistics.quantile({ 3.0 }, 0.25), statistics.quantile({ 5, 1 }, 0.25) }, { 3.0, 2.0 })
    -- long times do not move it
    for _, factor in ipairs { 1, 100 } do
        check.equal(statistics.quantile({ 50 * factor, 2, 10 * factor, 1, 40 * factor }, 0.25), 2.0)
    end
end

function test.median_is_the_middle_and_leaves_the_list_alone()
    local list = { 5, 1, 9 }
    check.equal(statistics.median(list), 5.0)
    check.equal(list, { 5, 1, 9 })
    check.equal(statistics.median { 4, 1, 3, 100 }, 3.5)
    check.equal(statistics.median {}, nil)
end

function test.paired_ratios_cancel_common_drift()
    check.equal(statistics.paired({ 2, 4, 8 }, { 1, 2, 4 }), { 2.0, 2.0, 2.0 })
end

function test.interval_of_equal_values_has_no_width()
    check.equal(statistics.interval({ { 3, 3 }, { 3 } }, 1, 100), { centre = 3.0, low = 3.0, high = 3.0, samples = 3 })
end

function test.interval_depends_on_the_seed_only()
    local groups = { { 1, 2, 3, 4, 5, 6, 7 }, { 2, 4, 6, 8 } }
    check.equal(statistics.interval(groups, 7, 200), statistics.interval(groups, 7, 200))
end

-- How many of 300 intervals hold the true median 0 when each of `processes` moves its 10 values by `moved` deviations;
-- `join` forgets which values came from one process.
local function covered(processes, moved, join)
    local random, count = statistics.random(42), 0
    for seed = 1, 300 do
        local groups = {}
        for g = 1, processes do
            local move, group = moved * normal(random), {}
            for i = 1, 10 do
                group[i] = move + normal(random)
            end
            groups[g] = group
        end
        if join then
            local all = {}
            for _, group in ipairs(groups) do
                table.move(group, 1, #group, #all + 1, all)
            end
            groups = { all }
        end
        local interval = statistics.interval(groups, seed, 200)
        if interval.low <= 0 and interval.high >= 0 then count = count + 1 end
    end
    return count / 300
end

function test.interval_holds_the_true_median_19_times_in_20()
    check.equal(covered(4, 0, true) >= 0.92, true)
    check.equal(covered(4, 0, false) >= 0.95, true)
end

function test.processes_that_differ_are_not_mistaken_for_many_samples()
    check.equal(covered(6, 1, false) >= 0.87, true)
    check.equal(covered(6, 1, true) < 0.75, true) -- why there are two levels
end

function test.spread_of_a_control_reaches_to_one()
    check.near(statistics.spread { low = 0.98, high = 1.01 }, 0.03, 1e-12)
    check.near(statistics.spread { low = 1.02, high = 1.05 }, 0.05, 1e-12)
    check.near(statistics.spread { low = 0.94, high = 0.97 }, 0.06, 1e-12)
end

function test.core_is_contended_when_wall_time_passes_without_work()
    check.equal(statistics.contended({ 1, 1, 1 }, { 1, 1.01, 1.9 }), false)
    check.equal(statistics.contended({ 1, 1, 1 }, { 1.9, 1.01, 2 }), true)
end

return test
