-- Tunes the kernels of one instruction set with one compiler: those for many tokens, those for few, then the threshold
-- between them.
local budget = require "harness.tune.budget"
local candidates = require "harness.tune.candidates"
local cpus = require "harness.base.cpus"
local round = require "harness.tune.round"
local race = require "harness.tune.race"
local record = require "harness.tune.record"
local statistics = require "harness.base.statistics"

local tuning = {}

local most_candidates = 400 -- of a race: far more than there is time for
local few_candidates = 40 -- to list so many takes no time worth speaking of

-- The plan of session `s` with schedule `choices` of its instruction set.
function tuning.plan(s, choices) return s.family.build(s.model, { s.isa }, s.options, { [s.isa.name] = choices }) end

-- The races of session `s` around the schedule of plan `p`: { {regime, space, batches} }; those without batches are
-- left out.
local function races(s, p)
    local v, list = p.variants[1], {}
    local threshold = candidates.most_few(v.schedule)
    for _, regime in ipairs { "many", "few" } do
        local options = { caches = s.caches, choices = s.choices and s.choices[regime] }
        local space, batches = candidates.space(p, v, regime, options), {}
        for _, batch in ipairs(s.batches) do
            local few = batch <= candidates.most_few(space.base)
            if regime == "many" and batch > threshold or regime == "few" and few then batches[#batches + 1] = batch end
        end
        local varied = not s.choices or s.choices[regime]
        if space.exists and #batches > 0 and varied then list[#list + 1] = { regime = regime, batches = batches } end
    end
    return list
end

-- The candidates of shard i of n: the default and every n-th of the others.
local function of_shard(list, shard)
    local own = { list[1] }
    for i = 2, #list do
        if (i - 2) % shard.n == shard.i - 1 then own[#own + 1] = list[i] end
    end
    return own
end

-- What an earlier run of this log knows of the race `r`: the record that lists its field, and the rejected candidates
-- by name.
local function earlier(s, r)
    local entered, rejected = nil, {}
    for _, known in ipairs(s.known) do
        if known.regime == r.regime and known.status == "entered" then entered = known end
        if known.regime == r.regime and known.status == "rejected" then rejected[known.candidate] = true end
    end
    return entered, rejected
end

-- Which candidates to look at: the field of the race that the log knows, or the space's, in the order of the estimate.
local function listed(s, space, entered)
    if entered then
        local list = {}
        for i, text in ipairs(entered.field) do
            list[i] = { text = text, schedule = s.schedules.parse(text) }
        end
        return { list = list, rejected = {}, total = candidates.count(space) }
    end
    local found = s.exhaustive and candidates.exhaustive(space) or candidates.list(space, most_candidates)
    found.list = of_shard(found.list, s.shard)
    return found
end

-- What timing race `r` costs, by what the default takes in a process much shorter than those of the race: seconds of
-- one sample, seconds before the first one, the largest time a token, in µs, and how much of a sample one of halving
-- takes; nil: no time was left.
local function times_of_default(s, r, made)
    local start, conditions = s.now(), #s.tuning.conditions
    local repetitions, runner = conditions, { made = made, regime = r.regime }
    local job = round.job(s, { runner, runner }, r.batches, conditions, repetitions, s.seed)
    local samples, context = s.measure(job, { left = s.left() })
    if not samples then return nil end
    local most, us = 0, {}
    for _, batch in ipairs(r.batches) do
        us[batch] = statistics.median(round.times(s, samples, 1, batch, s.tuning.conditions[1]))
        most = math.max(most, us[batch])
    end
    -- About the seconds that calls of a sample at `batches` take: what else it takes, it takes in halving, too.
    local function seconds_at(batches)
        local sum = 0
        for _, batch in ipairs(batches) do
            sum = sum + math.max(round.seconds_a_sample, batch * (us[batch] or us[r.batches[1]]) * 1e-6)
        end
        return sum
    end
    -- waiting for others that measure is no cost of this race
    local whole = context and tonumber(context.whole_seconds) or s.now() - start
    local timed = context and tonumber(context.timed_seconds) or whole
    local sample, own = timed / 2 / repetitions, seconds_at(r.batches)
    local other = math.max(0, sample - own)
    return sample, whole - timed, most, (other + seconds_at(round.screened(r.batches))) / (other + own)
end

-- Seconds that compiling may take: as many as it takes for all of a space, or else those that are left.
local function building_left(s) return not s.exhaustive and s.left() or nil end

-- The space of race `r` around `base`.
local function space_of(s, r, base)
    local p = tuning.plan(s, base)
    return candidates.space(p, p.variants[1], r.regime, {
        base = base,
        caches = s.caches,
        choices = s.choices and s.choices[r.regime],
        batch = r.regime == "few" and r.batches[1] or r.batches[#r.batches],
    })
end

-- Raises one line for a session that shall race all of a space that is too large.
function tuning.check(s)
    local p = tuning.plan(s, nil)
    for _, r in ipairs(s.exhaustive and races(s, p) or {}) do
        candidates.exhaustive_count(space_of(s, r, p.variants[1].schedule))
    end
end

-- The candidates of race `r` around `base`: what `listed` returns, the record of an earlier run that lists its field,
-- and the space.
local function candidates_of(s, r, base)
    if r.around == base then return table.unpack(r.candidates) end
    local space = space_of(s, r, base)
    local entered, known_rejected = earlier(s, r)
    r.around, r.candidates = base, { listed(s, space, entered), entered or false, known_rejected }
    return table.unpack(r.candidates)
end

-- Whether the seconds that are left are enough for a race of `list` with one candidate, if it took no time to compile.
local function any_time(s, list)
    for _, r in ipairs(list) do
        local least = { build = 0, sample = round.seconds_a_sample * #r.batches }
        if budget.seconds(least, 1) <= s.left() then return true end
    end
    return false
end

-- Whether the seconds that are left may be enough for any race of session `s`.
function tuning.has_time(s) return any_time(s, races(s, tuning.plan(s, nil))) end

-- Seconds that compiling and verifying one candidate of race `r` takes, beside others. With kernels apart, those of the
-- first few, which are kept, or `guess`, if there is none, or no time; else as many as the default `made` took.
local function seconds_a_build(s, r, base, made, guess)
    if not s.apart then return made.seconds end
    local list, plans = candidates_of(s, r, base).list, {}
    for i = 2, math.min(#list, 1 + 2 * cpus.count()) do
        plans[#plans + 1] = tuning.plan(s, list[i].schedule)
    end
    if #plans == 0 or s.exhaustive then return guess end
    local sum = 0
    for _, one in ipairs(s.shop:make(plans, r.regime, s.left(), true)) do
        sum = sum + (one.seconds or guess)
    end
    return sum / #plans
end

-- How many candidates race `r` has beside the default, found quickly: where they are not few, as many as it may have.
local function about_listed(s, r, base)
    local entered = earlier(s, r)
    if entered then return #entered.field - 1 end
    local count = s.exhaustive and most_candidates or #candidates.list(space_of(s, r, base), few_candidates).list - 1
    return (count < few_candidates - 1 and count or most_candidates) // s.shard.n
end

-- Finds what the races of `list` around `base` cost (harness/tune/budget.lua); false: no time was left, and it is a
-- guess.
local function find_costs(s, list, base)
    local guess, ready = 0.5 / cpus.count(), any_time(s, list)
    s.us_per_token, s.build_seconds = 0, guess
    for _, r in ipairs(list) do
        r.costs = {
            build = guess,
            sample = 2 * round.seconds_a_sample * #r.batches,
            listed = most_candidates,
        }
        local made, sample, start, us, screen = { late = true }, nil, nil, nil, nil
        if ready then
            s.show(string.format("%s: compiling and timing the default", r.regime))
            made = s.shop:make({ tuning.plan(s, base) }, r.regime, building_left(s))[1]
        end
        if made.failure then error(string.format("%s: the default schedule: %s", s.isa.name, made.failure), 0) end
        if not made.late then
            sample, start, us, screen = times_of_default(s, r, made)
        end
        ready = sample ~= nil
        if ready then
            s.us_per_token = math.max(s.us_per_token, us)
            s.build_seconds = math.max(s.build_seconds, made.seconds)
            r.costs = {
                build = s.exhaustive and 0 or seconds_a_build(s, r, base, made, guess),
                sample = sample,
                screen = screen,
                start = start,
                prove = made.verifying or made.seconds,
                listed = #candidates_of(s, r, base).list - 1,
            }
        else
            r.costs.listed = about_listed(s, r, base)
        end
    end
    return ready
end

-- About: seconds of packing, timing the default, the threshold and the confirmation of a small model, where nothing has
-- been measured.
local beside_races = 10

-- Says how many candidates the time lets the races of `list` try, and how much is recommended. `ready`: as `find_costs`
-- returns it; `at_end`: seconds that the session keeps for its end.
local function announce(s, list, ready, at_end)
    local enough = s.spent() + at_end + s.ending + (ready and 0 or beside_races)
    for _, r in ipairs(list) do
        enough = enough + budget.enough(r.costs)
    end
    local counts = ready and budget.all(list, s.left() - at_end)
    if not s.exhaustive then s.note(budget.line(list, counts or nil, s.seconds, enough * s.units)) end
end

-- Compiles and verifies the candidates of `list` in its order, as many as the race has time for until `stop`; notes
-- those that are wrong. Returns the field of the race.
local function prepare(s, r, list, known_rejected, entered, stop)
    local field, failed, step = {}, {}, 4 * cpus.count()
    local first, start = 1, s.now()
    -- How many more to compile now: so many that all of them can be raced; beside the default at least one.
    local function more()
        if entered or s.exhaustive or first == 1 then return step end
        local build = (s.now() - start) / (first - 1)
        if first <= step then build = math.max(build, r.costs.build) end -- of few nobody knows yet
        local costs, half = setmetatable({ build = build }, { __index = r.costs }), start + (stop - start) / 2
        for count = step, 1, -1 do
            local seconds = budget.seconds(costs, #field - 1 + count) - build * (#field - 1)
            if s.now() + seconds <= stop and s.now() + build * count <= half then return count end
        end
        return first == 2 and 1 or 0
    end
    while first <= #list do
        local count = first == 1 and 1 or more()
        if count == 0 then break end
        local last = math.min(first + count - 1, #list)
        s.show(string.format("%s: compiling and verifying %d/%d", r.regime, first, #list))
        local plans = {}
        for i = first, last do
            plans[#plans + 1] = tuning.plan(s, list[i].schedule)
        end
        local late = false
        for i, made in ipairs(s.shop:make(plans, r.regime, building_left(s), true)) do
            local candidate = list[first + i - 1]
            if made.late then
                late = true
            elseif not made.failure then
                field[#field + 1] =
                    { text = candidate.text, schedule = candidate.schedule, cost = candidate.cost, made = made }
            else
                failed[#failed + 1] = { text = candidate.text, reason = made.failure }
                if not known_rejected[candidate.text] then
                    round.log(
                        s,
                        { status = "rejected", candidate = candidate.text, regime = r.regime, reason = made.failure }
                    )
                end
            end
        end
        if late then break end
        first = last + 1
    end
    return field, failed, #list - #field - #failed
end

-- Wraps the measuring functions of a race so that the progress shows what goes on.
local function shown(s, r, measurer, default, stop)
    local best, rounds = 1, 0
    local function wrap(measured)
        return function(names, repetitions, seed, h)
            rounds = rounds + 1
            s.show(
                string.format(
                    "%s: %s, round %d, %d candidates, best so far %.2fx the default's %s",
                    r.regime,
                    h.phase,
                    rounds,
                    #names - 2,
                    best,
                    s.device and s.device.unit or "time"
                ),
                stop
            )
            local result = measured(names, repetitions, seed, h)
            for _, name in ipairs(result and names or {}) do
                best = math.min(best, statistics.median(statistics.paired(result[name], result[default])))
            end
            return result
        end
    end
    return { measure = wrap(measurer.measure), confirm = wrap(measurer.confirm), known = measurer.known }
end

-- The result of a race that there is no time for: the default is kept.
local function untried(s, r, base)
    local result = race.kept(s.schedules.text(base), "no time", "there was no time to try one candidate")
    result.regime, result.batches, result.schedule = r.regime, r.batches, base
    return result
end

-- Runs one race with `seconds` to spend around the schedule `base`, which let it try about `tried` candidates: the
-- race's result (harness/tune/race.lua) with regime, batches, schedule (of the winner), field, failed, rejected, total
-- (schedules of the space), untried, space (see gen/plan/space.lua).
local function run_race(s, r, base, seconds, tried)
    local start = s.now()
    local found, entered, known_rejected = candidates_of(s, r, base)
    if tried == 0 and not entered and not s.exhaustive and #found.list > 1 then return untried(s, r, base) end
    local field, failed, left_out = prepare(s, r, found.list, known_rejected, entered, start + seconds)
    local alone = #field < 2 and left_out > 0
    if #field == 0 or alone or entered and #field + #failed < #entered.field then return untried(s, r, base) end
    local runners, by_name, names = {}, {}, {}
    for i, candidate in ipairs(field) do
        runners[i] = { name = candidate.text, bytes = candidate.made.bytes }
        by_name[candidate.text], names[i] = candidate, candidate.text
    end
    local default = names[1]
    if not entered then
        round.log(s, {
            status = "entered",
            candidate = default,
            regime = r.regime,
            field = names,
            batches = s.batches_text,
            shard = s.shard.text,
        })
    end
    if s.exhaustive then s.add_time(s.now() - start) end -- all of a space take what they take to compile
    local stop = (s.exhaustive and s.now() or start) + seconds
    local t = setmetatable({ regime = r.regime, batches = r.batches }, { __index = s })
    local measurer = shown(s, r, round.measurer(t, by_name, default), default, stop)
    -- Why the candidate `name`, which was verified by a few tokens only, is wrong; nil: it is right; false: no time.
    local function prove(name)
        s.show(string.format("%s: verifying the fastest thoroughly", r.regime))
        local candidate = by_name[name]
        local found = s.shop:prove({ candidate.made }, r.regime, math.max(0, stop - s.now()))
        local reason = found and found[1]
        if reason then
            failed[#failed + 1] = { text = name, reason = reason }
            if not known_rejected[name] then
                round.log(s, { status = "rejected", candidate = name, regime = r.regime, reason = reason })
            end
        end
        if not found then return false end
        return reason or nil
    end
    local result = race.run {
        candidates = runners,
        prove = prove,
        proving = r.costs.prove,
        seed = s.seed,
        rules = budget.rules,
        sample = r.costs.sample,
        screen = r.costs.screen,
        measure = measurer.measure,
        confirm = measurer.confirm,
        known = measurer.known,
        left = function() return stop - s.now() end,
    }
    result.regime, result.batches, result.field, result.failed, result.rejected =
        r.regime, r.batches, field, failed, found.rejected
    result.space = s.schedules
    result.total, result.untried, result.seconds = found.total, left_out, s.now() - start
    result.schedule, result.bytes = by_name[result.winner].schedule, by_name[result.winner].made.bytes
    result.contended = (t.contended or 0) > (t.rounds or 0) / 4
    round.log_choice(s, result)
    return result
end

-- The race `r` of a shard as its log tells it, without field and history, once the race was finished; else nil.
local function finished_race(s, r)
    for _, known in ipairs(s.shard.n > 1 and s.known or {}) do
        if known.status == "chosen" and known.regime == r.regime then
            local result = record.race(known, r.batches)
            result.schedule, result.reason = s.schedules.parse(known.candidate), "finished in an earlier run"
            return result
        end
    end
end

local threshold_key = "few.threshold"
local widest_probe = 4096 -- tokens
local threshold_repetitions = 5

-- The legal thresholds of the plan `p` of session `s` with schedule `base`, and those at which both regimes are timed;
-- nil: nothing to choose.
local function thresholds(s, p, base)
    local legal, probes = {}, {}
    if (base[threshold_key] or 0) == 0 then return nil end
    local isa = p.variants[1].isa -- which has what the types need
    for _, value in ipairs(s.schedules.choice(threshold_key, "threshold").values(p.shape, isa, base)) do
        if value > 0 and value <= widest_probe then legal[#legal + 1] = value end
        if value > 1 and value <= widest_probe then probes[#probes + 1] = value end
    end
    if #probes > 0 then return legal, probes end
    return nil
end

-- About how many seconds `threshold` takes; `build`: those of making one library.
local function threshold_seconds(s, base, build)
    local _, probes = thresholds(s, tuning.plan(s, base), base)
    local seconds = probes and 2 * build or 0
    for _, probe in ipairs(probes or {}) do
        local sample = math.max(round.seconds_a_sample, probe * s.us_per_token * 1e-6)
        seconds = seconds + 3 * (threshold_repetitions + 1) * sample
    end
    return seconds
end

-- The threshold for the kernels of schedule `base`: at the legal thresholds both regimes are timed; few.threshold
-- becomes the value that makes the sum of their log times least, or stays if that gains no more than measuring the same
-- twice shows. nil: nothing to choose, or no time left.
local function threshold(s, base)
    local p, default = tuning.plan(s, base), base[threshold_key]
    local shape, isa = p.shape, p.variants[1].isa
    local legal, probes = thresholds(s, p, base)
    if not legal then return nil end
    s.show(string.format("threshold: few and many tokens at %d … %d", probes[1], probes[#probes]))
    local wide = setmetatable({ [threshold_key] = legal[#legal] }, { __index = base })
    local made = s.shop:make({ tuning.plan(s, s.schedules.make(shape, isa, wide)) }, nil, s.left())[1]
    if not made.library then return nil end
    local runners =
        { { made = made, regime = "few" }, { made = made, regime = "many" }, { made = made, regime = "many" } }
    local samples = s.measure(round.job(s, runners, probes, 1, threshold_repetitions, s.seed), { left = s.left() })
    if not samples then return nil end
    local few, many, noise = {}, {}, 0
    for i, probe in ipairs(probes) do
        local times = {}
        for runner = 1, 3 do
            times[runner] = statistics.median(round.times(s, samples, runner, probe, s.tuning.conditions[1]))
        end
        few[i], many[i] = math.log(times[1]), math.log(math.min(times[2], times[3]))
        noise = noise + math.abs(math.log(times[2] / times[3]))
    end
    local function total(value)
        local sum = 0
        for i, probe in ipairs(probes) do
            sum = sum + (probe <= value and few[i] or many[i])
        end
        return sum
    end
    local best = default
    for _, value in ipairs(legal) do
        if total(value) < total(best) then best = value end
    end
    if total(default) - total(best) <= math.max(2 * noise, 0.02) then best = default end
    return { from = default, to = best, gain = total(default) - total(best), noise = noise, probes = probes }
end

-- Tunes session `s`: model, schedules (the space of its plans), isa, cc, version (of cc), cflags, threads, tables and
-- projection or type and cache, batches (ascending), batches_text, seed, files, caches, sweep_bytes, key, run, host,
-- keep(record), known (records of an earlier run), shard { i, n, text }, exhaustive, choices (lists of keys by regime,
-- or nil), shop (harness/tune/build.lua), apart (whether it compiles kernels apart), now(), left(), add_time(seconds),
-- note(text) and show(text, stop); seconds, of the whole run, units, the sessions of the run, spent(), of this one, and
-- ending, the seconds that follow it. Returns { default, schedule, races = { results of run_race }, threshold,
-- measured };
-- `measured`: whether any race had time. A finished race of a shard is not run again.
function tuning.run(s)
    local base = tuning.plan(s, nil)
    local result = { default = base.variants[1].schedule, races = {} }
    result.schedule = result.default
    local list, open = races(s, base), {}
    for i, r in ipairs(list) do
        result.races[i] = finished_race(s, r)
        if not result.races[i] then open[#open + 1] = r end
    end
    local board = s.device and s.device.unit -- whose kernels are all of one regime
    local whole, at_end = s.shard.n == 1 and not s.choices and not board, 0
    local ready = find_costs(s, open, result.default)
    if #open > 0 then
        at_end = whole and ready and threshold_seconds(s, result.default, s.build_seconds) or 0
        announce(s, open, ready, at_end)
    end
    for i, r in ipairs(list) do
        -- all shards race around the default, or else their candidates would not be parts of one field
        local around = s.shard.n == 1 and result.schedule or result.default
        local done = result.races[i]
        if not done then
            local seconds, tried = budget.first(open, s.left() - at_end)
            done = ready and run_race(s, r, around, seconds, tried) or untried(s, r, around)
            table.remove(open, 1)
        end
        if not result.races[i] and not done.field and s.shard.n > 1 then round.log_choice(s, done) end -- it is finished
        result.races[i], result.measured = done, result.measured or done.field ~= nil
        local chosen = {}
        for key, value in pairs(done.schedule) do
            local raced = s.shard.n == 1 or (key:find("^few%.") ~= nil) == (r.regime == "few")
            chosen[key] = key ~= threshold_key and raced and value or result.schedule[key]
        end
        result.schedule = chosen
    end
    result.threshold = whole and result.measured and threshold(s, result.schedule) or nil
    if result.threshold then
        local wanted = setmetatable({ [threshold_key] = result.threshold.to }, { __index = result.schedule })
        result.schedule = s.schedules.make(base.shape, base.variants[1].isa, wanted)
    end
    return result
end

-- The result of `tuning.run` for a shard whose log has the end of every race; else nil.
function tuning.finished(s)
    for _, r in ipairs(races(s, tuning.plan(s, nil))) do
        if not finished_race(s, r) then return nil end
    end
    return s.shard.n > 1 and tuning.run(s) or nil
end

return tuning
