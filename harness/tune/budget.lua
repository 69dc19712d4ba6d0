-- The arithmetic of a tuning's time: how long a race of so many candidates takes, and how many of them it can try in so
-- many seconds.
--
-- The costs of a race:
--   build    seconds that compiling and verifying one candidate takes, beside others
--   sample   seconds of one sample: of one candidate, at all batches, in one condition
--   screen   how much of that a sample of halving takes; 1 if nothing is said
--   start    seconds that a measuring process takes before it times; 0 if nothing is said
--   prove    seconds of verifying the winner thoroughly; 0 if nothing is said
--   listed   candidates that there are, beside the default
local race = require "harness.tune.race"

local budget = {}

-- Of the races: whole turns of the conditions; more processes rather than longer ones, as many as there is time for.
budget.rules = { first = 3, repetitions = 6, rounds = 60 }

-- Samples that a candidate takes until the slow ones are out, with its share of those of the default.
local halving = 5.5
-- Samples of a finalist at least, and a little more: all these are estimates.
local final = 1.1 * budget.rules.repetitions * race.rules.least
local beside_finalists = 5 -- the default, its twin, and the three that a new process confirms

-- Seconds of a race of `count` candidates beside the default: until few are left, and the least finals, which have
-- their share of the time.
function budget.seconds(costs, count)
    local start, finalists, halved = costs.start or 0, race.rules.finalists, 0
    if count > finalists then
        halved = costs.sample * (costs.screen or 1) * halving * count + start * 2 * math.ceil(count / race.rules.round)
    end
    local finals = costs.sample * final * (math.min(count, finalists) + beside_finalists)
        + start * (race.rules.least + 1)
    finals = math.max(finals, halved * race.rules.finals / (1 - race.rules.finals))
    return costs.build * count + halved + finals + (costs.prove or 0)
end

-- Whether a race of `seconds` can try `count` candidates beside the default. Where there are several, at most half of
-- the time goes into compiling, so that what was compiled is timed well.
function budget.fits(costs, count, seconds)
    return budget.seconds(costs, count) <= seconds and (count == 1 or costs.build * count <= seconds / 2)
end

-- The most candidates beside the default that a race can try in so many seconds; 0: not even one.
function budget.candidates(costs, seconds)
    local count = 0
    while count < costs.listed and budget.fits(costs, count + 1, seconds) do
        count = count + 1
    end
    return count
end

-- Seconds in which a race can try all of its candidates.
function budget.enough(costs) return math.max(budget.seconds(costs, costs.listed), 2 * costs.build * costs.listed) end

-- Seconds as a value of --time, rounded up: "45s", "12m", "3h".
function budget.text(seconds)
    local units = { { 120, 1, "s" }, { 7200, 60, "m" }, { math.huge, 3600, "h" } }
    for _, unit in ipairs(units) do
        if seconds <= unit[1] then return string.format("%d%s", math.ceil(seconds / unit[2]), unit[3]) end
    end
end

local fair = 60 -- candidates of a race: shares of the time are such that each could try about as many

-- Shares `seconds` among races { {costs} } in their order: each gets its part of what is left, the more the longer its
-- candidates take, or, if that is not enough for one candidate but all of it is, all. Returns the seconds of the first,
-- and how many candidates it can try.
function budget.first(list, seconds)
    local all = 0
    for _, r in ipairs(list) do
        all = all + budget.seconds(r.costs, math.min(fair, r.costs.listed))
    end
    local part = seconds * budget.seconds(list[1].costs, math.min(fair, list[1].costs.listed)) / all
    local tried = budget.candidates(list[1].costs, part)
    local alone = tried == 0 and budget.candidates(list[1].costs, seconds) or 0
    if alone > 0 then return seconds, alone end
    return part, tried
end

-- How many candidates each of these races can try: a list.
function budget.all(list, seconds)
    local counts = {}
    for i = 1, #list do
        local part, tried = budget.first({ table.unpack(list, i) }, seconds)
        counts[i] = tried
        if tried > 0 then seconds = seconds - part end
    end
    return counts
end

-- What a tuning says before it begins: what `seconds` let its races { {regime, costs} } try, so many candidates, and
-- what `enough`, a value of --time in seconds, would do. counts nil: the costs are a guess, there is no time to find
-- them.
function budget.line(list, counts, seconds, enough)
    local parts, complete, any = {}, true, 0
    for i, r in ipairs(list) do
        local listed, count = r.costs.listed, counts and counts[i] or 0
        if listed > 0 then
            local tried = count == 0 and "none" or tostring(count)
            parts[#parts + 1] = string.format("%s of %d candidates for %s tokens", tried, listed, r.regime)
        end
        complete, any = complete and counts and count >= listed, any + count
    end
    local found = #parts > 0 and any == 0 and "no time for any candidate"
        or #parts == 0 and "there is no candidate beside the default"
        or "time for about " .. table.concat(parts, " and ")
    local advice = string.format("; --time %s is recommended, for all of them", budget.text(enough))
    return string.format("%s: %s%s", budget.text(seconds), found, complete and "" or advice)
end

return budget
