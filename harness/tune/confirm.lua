-- Ends a tuning: what each compiler's tuning chose runs once more against the default and the dense FFN at every batch,
-- and what is slower than the default at one of them is taken back.
local round = require "harness.tune.round"
local measure = require "harness.measure.measure"
local statistics = require "harness.base.statistics"
local tuning = require "harness.tune.tuning"

local confirm = {}

local repetitions = 9
local tolerance = 0.01 -- ratios this close are equal

-- The verified library of session `s` for schedule `choices`; raises one line.
local function made_of(s, choices)
    local made = s.shop:make({ tuning.plan(s, choices) })[1]
    if made.failure then error(string.format("%s: %s: %s", s.isa.name, s.schedules.text(choices), made.failure), 0) end
    return made
end

local function regime_of(result, batch)
    local threshold = result.schedule["few.threshold"]
    return batch <= threshold and "few" or "many"
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
        local dense_us, library =
            measure.fastest_dense(samples, s.tuning.libraries or {}, batch, s.threads > 1 and "wall" or "cpu")
        rows[n] = {
            batch = batch,
            default_us = statistics.median(default),
            tuned_us = statistics.median(times),
            dense_us = dense_us and dense_us / batch,
            dense_library = library,
            ratio = ratio_of(s, samples, i, { batch }),
        }
    end
    return rows
end

-- Takes back what is slower than the default at one batch by more than the default is than itself. Returns the regimes.
local function take_back(s, tuned, rows, control)
    local reverted = {}
    for _, row in ipairs(rows) do
        local regime = regime_of(tuned, row.batch)
        if row.ratio.low > math.max(1 + tolerance, control.high) and not reverted[regime] then
            reverted[regime] = true
            tuned.schedule = taken_back(s, tuned, regime)
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

-- The outcome of the tunings `results` { {session, tuned} } of one instruction set, one a compiler, as
-- harness/tune/results.lua prints it: that of the first compiler, or of another one that is proven faster.
function confirm.measure(sessions, results)
    local first = sessions[1]
    first.show("confirming: the choice against the default and the dense FFN")
    local default = made_of(first, results[1].tuned.default)
    local runners = { { made = default, regime = "both" }, { made = default, regime = "both" } }
    for i, result in ipairs(results) do
        runners[i + 2] = { made = made_of(sessions[i], result.tuned.schedule), regime = "both" }
    end
    local job = round.job(first, runners, first.batches, 1, repetitions, first.seed)
    if first.tuning.libraries then job.dense = first.tuning.libraries end
    local samples = measure.run(job, {})
    local control = ratio_of(first, samples, 2, first.batches, 1, 1)

    local best
    local compilers = {}
    for i, result in ipairs(results) do
        local s, tuned = result.session, result.tuned
        local rows = rows_of(s, samples, i + 2)
        local reverted = take_back(s, tuned, rows, control)
        if next(reverted) then made_of(s, tuned.schedule) end
        local ratio = ratio_of(s, samples, i + 2, s.batches)
        compilers[i] = { cc = s.cc, version = s.version, ratio = ratio.median }
        tuning.log(s, {
            status = "chosen",
            candidate = s.schedules.text(tuned.schedule),
            regime = "both",
            batches = s.batches_text,
            ratio = ratio.median,
            low = ratio.low,
            high = ratio.high,
            pairs = ratio.samples,
            decided = decided_of(tuned),
            shard = s.shard.text,
        })
        local against = best and ratio_of(s, samples, i + 2, s.batches, best.runner, best.runner)
        if not best or (against.high < 1 - tolerance and statistics.spread(control) < 1 - against.median) then
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
