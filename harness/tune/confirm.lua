-- Ends a tuning: what each compiler's tuning chose runs once more against the default and the dense FFN at every batch,
-- and what is slower than the default at one of them is taken back.
local candidates = require "harness.tune.candidates"
local round = require "harness.tune.round"
local race = require "harness.tune.race"
local rivals = require "harness.measure.rivals"
local statistics = require "harness.base.statistics"
local tuning = require "harness.tune.tuning"

local confirm = {}

local tolerance = 0.01 -- ratios this close are equal

-- The verified library of session `s` for schedule `choices` (nil: the default), or nil if no time is left for it;
-- raises one line.
local function made_of(s, choices)
    local made = s.shop:make({ tuning.plan(s, choices) }, nil, s.left())[1]
    if made.failure then
        local name = choices and s.schedules.text(choices) or "the default schedule"
        error(string.format("%s: %s: %s", s.isa.name, name, made.failure), 0)
    end
    return made.library and made
end

-- Ways to confirm, the best first: repetitions, whether beside the dense FFN, and the share of the time that it may
-- take.
local ways = {
    { repetitions = 15, dense = true, share = 0.15 },
    { repetitions = 9, dense = true, share = 0.15 },
    { repetitions = 5, dense = true, share = 0.15 },
    { repetitions = 9, dense = false, share = 0.2 },
    { repetitions = 5, dense = false, share = 0.4 },
    { repetitions = 3, dense = false, share = 0.5 },
}
local slack = 1.25 -- other work may come that makes it longer
local probe_share = 0.05 -- of the time, for one repetition that shows how long they take

-- Seconds that confirming by `way` takes, by what `found` (confirm.plan) says.
local function seconds_of(way, found)
    return found.before + 1.2 * way.repetitions * (found.kernels + (way.dense and found.dense or 0))
end

-- The best of `ways` that takes at most `share(way)` seconds; nil: there is none.
local function best_way(found, share)
    for _, way in ipairs(ways) do
        if seconds_of(way, found) <= share(way) then return way end
    end
end

-- What confirming what `sessions` will choose costs: seconds, those to be kept for it; before, those that come before
-- the first repetition; kernels and dense, those of one repetition of the kernels and of the dense FFNs `beside`.
-- nil: no time is left for it.
function confirm.plan(sessions)
    local s = sessions[1]
    s.show("compiling and timing the default")
    local made = made_of(s, nil)
    if not made then return nil end
    local runner, left = { made = made, regime = "both" }, s.left()
    -- The costs beside the dense FFNs `beside`, nil: none.
    local function probe(beside, seconds)
        local start, job = s.now(), round.job(s, { runner, runner }, s.batches, 1, 1, s.seed)
        rivals.add_dense(job, beside or {})
        local samples, context = s.measure(job, { left = seconds })
        if not samples then return nil end
        local dense, kernels, before = 0, 0, context and tonumber(context.whole_seconds) or s.now() - start
        for name, sample in pairs(samples) do
            local took = math.max(round.seconds_a_sample, sample.wall[1] * 1e-6)
            if name:find("^dense/") then
                dense = dense + took
            else
                kernels = kernels + took
            end
        end
        -- beside other work a sample takes longer than what it says
        local slower = math.max(1, (context and tonumber(context.timed_seconds) or 0) / (dense + kernels))
        return {
            before = before,
            kernels = slower * kernels * (2 + #sessions) / 2,
            dense = slower * dense,
            beside = beside,
        }
    end
    local beside = s.tuning.rivals
    local found = beside and probe(beside, probe_share * left) or probe(nil, s.left())
    if not found then return nil end
    local making = 1.2 * made.seconds * #sessions
    local way = best_way(found, function(way) return way.share * left - making end)
    if not way then return nil end
    found.seconds = slack * (seconds_of(way, found) + making)
    return found
end

local function regime_of(result, batch)
    return batch <= candidates.most_few(result.schedule) and "few" or "many"
end

-- The choices of `regime` and, if it is that for few tokens, the threshold: back to the default's, where they are legal
-- beside the others.
local function taken_back(s, tuned, regime)
    local wanted = {}
    for name, value in pairs(tuned.schedule) do
        local few = name:find("^few%.") ~= nil
        wanted[name] = few == (regime == "few") and tuned.default[name] or value
    end
    local p = tuning.plan(s, nil)
    return s.schedules.try(p.shape, p.variants[1].isa, wanted) or tuned.default
end

-- The interval of the ratio of runner `i` to the mean of runners `a` and `b` (1 and 2, if absent: the default), paired,
-- over all batches.
local function ratio_of(s, samples, i, batches, a, b)
    local result, sums = {}, {}
    for _, batch in ipairs(batches) do
        local first, second =
            round.times(s, samples, a or 1, batch, s.tuning.conditions[1]),
            round.times(s, samples, b or 2, batch, s.tuning.conditions[1])
        for r, time in ipairs(round.times(s, samples, i, batch, s.tuning.conditions[1])) do
            sums[r] = (sums[r] or 0) + math.log(2 * time / (first[r] + second[r]))
        end
    end
    for r, sum in ipairs(sums) do
        result[r] = math.exp(sum / #batches)
    end
    return statistics.interval({ result }, s.seed, 1000)
end

-- One row a batch: times of the default and of runner `i`, their ratio with its interval, the dense FFN.
local function rows_of(s, samples, i)
    local rows = {}
    for n, batch in ipairs(s.batches) do
        local default, times =
            round.times(s, samples, 1, batch, s.tuning.conditions[1]),
            round.times(s, samples, i, batch, s.tuning.conditions[1])
        local dense_us, rival = rivals.fastest(samples, s.tuning.rivals or {}, batch, s.threads > 1 and "wall" or "cpu")
        rows[n] = {
            batch = batch,
            default_us = statistics.median(default),
            tuned_us = statistics.median(times),
            dense_us = dense_us and dense_us / batch,
            dense_library = rival and rival.library,
            ratio = ratio_of(s, samples, i, { batch }),
        }
    end
    return rows
end

-- Whether times whose ratio to the default's is `ratio`, at one batch, speak against a choice that its race calls
-- `decided`: they are proven longer by more than the default differs from itself, or, where the race was a tie and
-- there is no gain to lose, their median is longer.
function confirm.is_slower(ratio, decided, control)
    if decided == "tie" and ratio.centre > 1 + tolerance then return true end
    return ratio.low > math.max(1 + tolerance, control.high)
end

-- What the race of `regime` has decided; nil: there was none.
local function decided_of_regime(tuned, regime)
    for _, race in ipairs(tuned.races) do
        if race.regime == regime then return race.decided end
    end
end

-- Takes back the choices of a regime that are slower than the default at one of its batches. Returns the regimes.
local function take_back(s, tuned, rows, control)
    local reverted = {}
    for _, row in ipairs(rows) do
        local regime = regime_of(tuned, row.batch)
        local slower = confirm.is_slower(row.ratio, decided_of_regime(tuned, regime), control)
        if slower and not reverted[regime] then
            local without = taken_back(s, tuned, regime)
            reverted[regime] = s.schedules.text(without) ~= s.schedules.text(tuned.schedule) or nil
            tuned.schedule = without
        end
    end
    return reverted
end

-- Whether every race of `tuned` has decided something: "winner", or why not.
local function decided_of(tuned)
    local word = "tie"
    for _, r in ipairs(tuned.races) do
        if r.decided ~= "winner" and r.decided ~= "tie" then return r.decided end
        if r.decided == "winner" then word = "winner" end
    end
    return word
end

-- The result of tunings that there is no time to confirm: the default is kept.
function confirm.unconfirmed(sessions, results)
    local s, tuned = sessions[1], results[1].tuned
    if tuned.measured then
        local kept = race.kept(s.schedules.text(tuned.default), "no time")
        kept.regime = "both"
        round.log_choice(s, kept)
    end
    return {
        session = s,
        default = tuned.default,
        schedule = tuned.default,
        races = tuned.races,
        late = tuned.measured or nil,
    }
end

-- The result of the tunings `results` { {session, tuned} } of one instruction set, one a compiler, as
-- harness/tune/results.lua prints it: that of the first compiler, or of another one that is proven faster. `plan`: a
-- result of confirm.plan; how often is measured depends on the time that is left now.
function confirm.measure(sessions, results, plan)
    local first = sessions[1]
    first.show("confirming: the choice against the default" .. (first.tuning.rivals and " and the dense FFN" or ""))
    local default = made_of(first, results[1].tuned.default)
    local runners = { { made = default, regime = "both" }, { made = default, regime = "both" } }
    for i, result in ipairs(results) do
        runners[i + 2] = { made = made_of(sessions[i], result.tuned.schedule), regime = "both" }
        if not default or not runners[i + 2].made then return confirm.unconfirmed(sessions, results) end
    end
    local left = first.left()
    local way = best_way(plan, function() return left / slack end) or ways[#ways]
    local job = round.job(first, runners, first.batches, 1, way.repetitions, first.seed)
    rivals.add_dense(job, way.dense and plan.beside or {})
    local samples = first.measure(job, { left = first.left() })
    if not samples then return confirm.unconfirmed(sessions, results) end
    local control = ratio_of(first, samples, 2, first.batches, 1, 1)

    local best
    local compilers = {}
    for i, result in ipairs(results) do
        local s, tuned = result.session, result.tuned
        local rows = rows_of(s, samples, i + 2)
        local reverted = take_back(s, tuned, rows, control)
        if next(reverted) and not made_of(s, tuned.schedule) then return confirm.unconfirmed(sessions, results) end
        local ratio = ratio_of(s, samples, i + 2, s.batches)
        compilers[i] = { cc = s.cc, version = s.version, ratio = ratio.centre }
        round.log_choice(s, {
            winner = s.schedules.text(tuned.schedule),
            regime = "both",
            ratio = ratio.centre,
            low = ratio.low,
            high = ratio.high,
            samples = ratio.samples,
            decided = decided_of(tuned),
        })
        local against = best and ratio_of(s, samples, i + 2, s.batches, best.runner, best.runner)
        if not best or (against.high < 1 - tolerance and statistics.spread(control) < 1 - against.centre) then
            best = {
                runner = i + 2,
                session = s,
                default = tuned.default,
                schedule = tuned.schedule,
                races = tuned.races,
                threshold = tuned.threshold,
                rows = rows,
                ratio = ratio,
                control = control,
                reverted = reverted,
            }
        end
    end
    best.compilers = compilers
    return best
end

return confirm
