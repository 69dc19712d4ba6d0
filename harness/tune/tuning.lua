-- Tunes the kernels of one instruction set with one compiler: those for many tokens, those for few, then the threshold
-- between them.
local candidates = require "harness.tune.candidates"
local round = require "harness.tune.round"
local log = require "harness.tune.log"
local measure = require "harness.measure.measure"
local process = require "process"
local race = require "harness.tune.race"
local record = require "harness.tune.record"
local statistics = require "harness.base.statistics"

local tuning = {}

local most_candidates = 400 -- of a race: far more than there is time for
-- whole turns of the conditions; more processes rather than longer ones
local rules = { first = 3, repetitions = 6, rounds = 16 }
local preparing = 0.5 -- share of a race's time for compiling and verifying at most
-- samples that a candidate takes until half of them and half of those are out, and that finals take
local a_candidate, the_finals = 9, 220

-- The plan of session `s` with schedule `choices` of its instruction set.
function tuning.plan(s, choices) return s.family.build(s.model, { s.isa }, s.options, { [s.isa.name] = choices }) end

-- A record of session `s` with these fields.
function tuning.log(s, fields)
    fields.key, fields.cc, fields.run, fields.host, fields.time = s.key, s.cc, s.run, s.host, process.time()
    fields.model = s.model.name
    log.append(s.log, record.make(fields))
end

-- The races of session `s` around the schedule of plan `p`: { {regime, space, batches} }; those without batches are
-- left out.
local function races(s, p)
    local v, list = p.variants[1], {}
    local threshold = v.schedule["few.threshold"]
    for _, regime in ipairs { "many", "few" } do
        local options = { caches = s.caches, choices = s.choices and s.choices[regime] }
        local space, batches = candidates.space(p, v, regime, options), {}
        for _, batch in ipairs(s.batches) do
            if regime == "many" and batch > threshold or regime == "few" and batch <= space.base["few.threshold"] then
                batches[#batches + 1] = batch
            end
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

-- Seconds of one sample of race `r`, by what the default takes in a process about half as long as those of the race.
local function seconds_a_sample(s, r, made)
    local start, conditions = s.now(), #s.tuning.conditions
    local repetitions = 4 * conditions
    measure.run(
        round.job(
            s,
            { { made = made, regime = r.regime }, { made = made, regime = r.regime } },
            r.batches,
            conditions,
            repetitions,
            s.seed
        ),
        {}
    )
    return (s.now() - start) / 2 / repetitions
end

-- Compiles and verifies the candidates of `list` in its order, as many as the race has time for until `stop`; notes
-- those that are wrong. Returns the field of the race.
local function prepare(s, r, list, known_rejected, entered, stop)
    local field, failed, step = {}, {}, 2 * process.cpu_count()
    local first, start, sample = 1, s.now(), nil
    local function enough()
        if #field <= race.rules.finalists and first <= 4 * step or entered or s.exhaustive then return false end
        sample = sample or seconds_a_sample(s, r, field[1].made)
        local race_seconds = sample * (the_finals + a_candidate * (#field + step))
        return s.now() + race_seconds > stop or s.now() > start + preparing * (stop - start)
    end
    while first <= #list and not enough() do
        local last = math.min(first == 1 and 1 or first + step - 1, #list)
        s.show(string.format("%s: compiling and verifying %d/%d", r.regime, first, #list))
        local plans = {}
        for i = first, last do
            plans[#plans + 1] = tuning.plan(s, list[i].schedule)
        end
        for i, made in ipairs(s.shop:make(plans, r.regime)) do
            local candidate = list[first + i - 1]
            if not made.failure then
                field[#field + 1] =
                    { text = candidate.text, schedule = candidate.schedule, cost = candidate.cost, made = made }
            elseif first == 1 then
                error(
                    string.format(
                        "%s %s: the default schedule: %s: nothing was timed",
                        s.isa.name,
                        r.regime,
                        made.failure
                    ),
                    0
                )
            else
                failed[#failed + 1] = { text = candidate.text, reason = made.failure }
                if not known_rejected[candidate.text] then
                    tuning.log(
                        s,
                        { status = "rejected", candidate = candidate.text, regime = r.regime, reason = made.failure }
                    )
                end
            end
        end
        first = last + 1
    end
    return field, failed, #list - first + 1
end

-- Wraps the measuring functions of a race so that the progress shows what goes on.
local function shown(s, r, measurer, default, stop)
    local best, rounds = 1, 0
    local function wrap(measured)
        return function(names, repetitions, seed, h)
            rounds = rounds + 1
            s.show(
                string.format(
                    "%s: %s, round %d, %d candidates, best so far %.2fx the default's time",
                    r.regime,
                    h.phase,
                    rounds,
                    #names - 2,
                    best
                ),
                stop
            )
            local result = measured(names, repetitions, seed, h)
            for _, name in ipairs(names) do
                best = math.min(best, statistics.median(statistics.paired(result[name], result[default])))
            end
            return result
        end
    end
    return { measure = wrap(measurer.measure), confirm = wrap(measurer.confirm), known = measurer.known }
end

-- Runs one race with `seconds` to spend around the schedule `base`: the race's result (harness/tune/race.lua) with
-- regime, batches, schedule (of the winner), field, failed, rejected, total (schedules of the space),
-- untried, space (see
-- gen/plan/space.lua).
local function run_race(s, r, base, seconds)
    local start = s.now()
    local p = tuning.plan(s, base)
    local space = candidates.space(p, p.variants[1], r.regime, {
        base = base,
        caches = s.caches,
        choices = s.choices and s.choices[r.regime],
        batch = r.regime == "few" and r.batches[1] or r.batches[#r.batches],
    })
    local entered, known_rejected = earlier(s, r)
    local found = listed(s, space, entered)
    local field, failed, untried = prepare(s, r, found.list, known_rejected, entered, start + seconds)
    local runners, by_name, names = {}, {}, {}
    for i, candidate in ipairs(field) do
        runners[i] = { name = candidate.text, bytes = candidate.made.bytes }
        by_name[candidate.text], names[i] = candidate, candidate.text
    end
    local default = names[1]
    if not entered then
        tuning.log(s, {
            status = "entered",
            candidate = default,
            regime = r.regime,
            field = names,
            batches = s.batches_text,
            shard = s.shard.text,
        })
    end
    local stop = (s.exhaustive and s.now() or start) + seconds -- all of a space take what they take to compile
    local t = setmetatable({ regime = r.regime, batches = r.batches }, { __index = s })
    local measurer = shown(s, r, round.measurer(t, by_name, default), default, stop)
    local result = race.run {
        candidates = runners,
        seed = s.seed,
        rules = rules,
        measure = measurer.measure,
        confirm = measurer.confirm,
        known = measurer.known,
        left = function() return stop - s.now() end,
    }
    result.regime, result.batches, result.field, result.failed, result.rejected =
        r.regime, r.batches, field, failed, found.rejected
    result.space = s.schedules
    result.total, result.untried, result.seconds = found.total, untried, s.now() - start
    result.schedule, result.bytes = by_name[result.winner].schedule, by_name[result.winner].made.bytes
    result.contended = (t.contended or 0) > (t.rounds or 0) / 4
    tuning.log(s, {
        status = "chosen",
        candidate = result.winner,
        regime = r.regime,
        batches = s.batches_text,
        ratio = result.ratio,
        low = result.low,
        high = result.high,
        pairs = result.samples,
        decided = result.decided,
        shard = s.shard.text,
        object_bytes = result.bytes,
    })
    return result
end

-- The race `r` of a shard as its log tells it, without field and history, once the race was finished; else nil.
local function finished_race(s, r)
    for _, known in ipairs(s.shard.n > 1 and s.known or {}) do
        if known.status == "chosen" and known.regime == r.regime then
            return {
                regime = r.regime,
                batches = r.batches,
                winner = known.candidate,
                schedule = s.schedules.parse(known.candidate),
                bytes = known.object_bytes,
                ratio = known.ratio,
                low = known.low,
                high = known.high,
                samples = known.pairs,
                decided = known.decided,
                reason = "finished in an earlier run",
            }
        end
    end
end

local threshold_key = "few.threshold"
local widest_probe = 4096 -- tokens

-- The threshold for the kernels of schedule `base`: at the legal thresholds both regimes are timed; few.threshold
-- becomes the value that makes the sum of their log times least, or stays if that gains no more than measuring the same
-- twice shows. nil: nothing to choose.
local function threshold(s, base)
    local p, default = tuning.plan(s, base), base[threshold_key]
    local shape, isa = p.shape, p.variants[1].isa -- which has what the types need
    local legal, probes = {}, {}
    for _, value in ipairs(s.schedules.choice(threshold_key, "threshold").values(shape, isa, base)) do
        if value > 0 and value <= widest_probe then legal[#legal + 1] = value end
        if value > 1 and value <= widest_probe then probes[#probes + 1] = value end
    end
    if default == 0 or #probes == 0 then return nil end
    s.show(string.format("threshold: few and many tokens at %d … %d", probes[1], probes[#probes]))
    local wide = setmetatable({ [threshold_key] = legal[#legal] }, { __index = base })
    local made = s.shop:make({ tuning.plan(s, s.schedules.make(shape, isa, wide)) })[1]
    if made.failure then return nil end
    local runners =
        { { made = made, regime = "few" }, { made = made, regime = "many" }, { made = made, regime = "many" } }
    local samples = measure.run(round.job(s, runners, probes, 1, 5, s.seed), {})
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
-- projection or type and cache, batches (ascending), batches_text, seed, files, caches, sweep_bytes, key, log, run,
-- host, known (records of the log), shard { i, n, text }, exhaustive, choices (lists of keys by regime, or nil), shop
-- (harness/tune/build.lua), now(), left() and show(text, stop). Returns { default, schedule, races = { results of
-- run_race }, threshold }. A finished race of a shard is not run again.
function tuning.run(s)
    local base = tuning.plan(s, nil)
    local result = { default = base.variants[1].schedule, races = {} }
    result.schedule = result.default
    local list = races(s, base)
    for i, r in ipairs(list) do
        -- all shards race around the default, or else their candidates would not be parts of one field
        local around = s.shard.n == 1 and result.schedule or result.default
        local done = finished_race(s, r) or run_race(s, r, around, s.left() / (#list - i + 1))
        result.races[i] = done
        local chosen = {}
        for key, value in pairs(done.schedule) do
            local raced = s.shard.n == 1 or (key:find("^few%.") ~= nil) == (r.regime == "few")
            chosen[key] = key ~= threshold_key and raced and value or result.schedule[key]
        end
        result.schedule = chosen
    end
    local whole = s.shard.n == 1 and not s.choices
    result.threshold = whole and threshold(s, result.schedule) or nil
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
