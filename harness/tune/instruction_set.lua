-- Tunes one instruction set with every compiler, in its part of the time that the run has left.
local confirm = require "harness.tune.confirm"
local tuning = require "harness.tune.tuning"

local instruction_set = {}

-- Seconds reserved for what follows the last set: the log goes into the store, files are written.
local function reserve(run) return math.min(1, 0.05 * run.seconds) end

-- The seconds that are left of so many from now on, as a function; what is added to the run counts for all of them.
local function countdown(run, seconds)
    local stop, added = run.now() + seconds, run.added
    return function() return stop + run.added - added - run.now() end
end

-- Tunes with `sessions` (see tuning.run), one a compiler. `run` is what all sets share: now(), start (of the run, by
-- that clock), prepare(seconds) (packs the weights, and ends the run with a word if that takes longer), seconds (that
-- it may take), added (those that do not count), units and all_units (tunings that are still to come, and all),
-- measured (whether another set was). Returns { {session, tuned} } and, unless it is a shard, the result as
-- harness/tune/confirm.lua gives it.
function instruction_set.tune(run, sessions)
    local list, start = {}, run.measured and run.now() or run.start
    local function all_left() return run.start + run.added + run.seconds - reserve(run) - run.now() end
    local left = countdown(run, all_left() * #sessions / run.units)
    local whole, has_time, plan = sessions[1].shard.n == 1, false, { seconds = 0 }
    for _, s in ipairs(sessions) do
        tuning.check(s)
        s.left = left
        has_time = has_time or tuning.has_time(s)
    end
    if has_time then run.prepare(all_left()) end
    if whole then plan = has_time and confirm.plan(sessions) or nil end
    for i, s in ipairs(sessions) do
        local began = i == 1 and start or run.now()
        s.left = countdown(run, plan and (left() - plan.seconds) / (#sessions - i + 1) or 0)
        s.ending, s.units, s.seconds = plan and plan.seconds or 0, run.all_units, run.seconds
        s.spent = function() return run.now() - began end
        s.add_time = function(seconds) run.added = run.added + seconds end
        list[i] = { session = s, tuned = tuning.run(s) }
    end
    local measured = true
    for i, s in ipairs(sessions) do
        s.left = left
        measured = measured and list[i].tuned.measured
    end
    if not whole then return list end
    return list, measured and confirm.measure(sessions, list, plan) or confirm.unconfirmed(sessions, list)
end

return instruction_set
