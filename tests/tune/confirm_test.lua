-- What the confirmation of a tuning takes back: a proven loss at one batch, and of a tie any loss beyond the tolerance.
local check = require "tests.support.check"
local confirm = require "harness.tune.confirm"

local test = {}

local control = { low = 0.98, high = 1.02 }

-- A ratio of times to the default's.
local function ratio(low, centre, high) return { low = low, centre = centre, high = high } end

function test.a_winner_is_taken_back_where_it_is_proven_slower()
    check.equal(confirm.is_slower(ratio(1.03, 1.05, 1.07), "winner", control), true)
    check.equal(confirm.is_slower(ratio(0.99, 1.03, 1.07), "winner", control), false)
    check.equal(confirm.is_slower(ratio(1.015, 1.03, 1.05), "winner", control), false) -- within the control
    check.equal(confirm.is_slower(ratio(0.8, 0.9, 1.0), "winner", control), false)
end

function test.a_tie_is_taken_back_where_its_median_is_slower()
    check.equal(confirm.is_slower(ratio(1.001, 1.03, 1.06), "tie", control), true)
    check.equal(confirm.is_slower(ratio(0.97, 1.011, 1.06), "tie", control), true)
    check.equal(confirm.is_slower(ratio(0.98, 1.009, 1.03), "tie", control), false)
    check.equal(confirm.is_slower(ratio(0.9, 0.95, 1.0), "tie", control), false)
end

return test
