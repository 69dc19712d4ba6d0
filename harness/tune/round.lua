-- One round of a race: a job for the measuring process, the times it gives, and their records in the log.
local process = require "process"
local race = require "harness.tune.race"
local record = require "harness.tune.record"
local statistics = require "harness.base.statistics"

local round = {}

round.seconds_a_sample = 0.012

local most_screened = 1024 -- tokens of a call that halving times: longer ones take most of the time and rank alike

-- What halving times instead of `batches`: those that are not longer, or one as long.
function round.screened(batches)
    local list = {}
    for i, batch in ipairs(batches) do
        list[i] = batch <= most_screened and batch or nil
    end
    return #list > 0 and list or { most_screened }
end

-- A job that times runners { made, regime }, called r1, r2, …, at `batches` tokens, in repetitions that take turns in
-- the first `count` of the conditions; `t` says with what: files, threads, seed, sweep_bytes, tuning (the family's
-- hooks, see harness/families/list.lua).
function round.job(t, runners, batches, count, repetitions, order_seed)
    return t.tuning.job(t, runners, batches, count, repetitions, order_seed, round.seconds_a_sample)
end

-- The times a token, in µs, that the repetitions of `condition` gave runner `i` of a job.
function round.times(t, samples, i, batch, condition)
    local sample = samples[string.format("ffn/r%d/%d/%s_%s", i, batch, condition.codes, condition.tables)]
    local times = {}
    for r, time in ipairs(sample[(t.threads > 1 or condition.tables == "cold") and "wall" or "cpu"]) do
        times[r] = time / batch
    end
    return times
end

-- One time a repetition: the geometric mean over the batches, in the condition whose turn it is. lists[batch][condition
-- number] are times.
local function means(t, lists, repetitions)
    local result, count = {}, #t.tuning.conditions
    for r = 1, repetitions do
        local sum = 0
        for _, batch in ipairs(t.batches) do
            sum = sum + math.log(lists[batch][(r - 1) % count + 1][(r - 1) // count + 1])
        end
        result[r] = math.exp(sum / #t.batches)
    end
    return result
end

-- How many of the repetitions are the turns of condition number `c`.
local function turns(t, repetitions, c) return (repetitions - c) // #t.tuning.conditions + 1 end

-- The name under which a race knows the round, in the log.
local function id_of(t, h) return t.regime .. " " .. h.id end

-- Keeps a record of session `s` with these fields.
function round.log(s, fields)
    fields.key, fields.cc, fields.run, fields.host, fields.time = s.key, s.cc, s.run, s.host, process.time()
    fields.model = s.name
    s.keep(record.make(fields))
end

-- Keeps what was chosen for the calls of a regime: winner (a schedule as text), regime, ratio, low, high, samples,
-- decided and, if it is known, bytes.
function round.log_choice(s, choice)
    round.log(s, {
        status = "chosen",
        candidate = choice.winner,
        regime = choice.regime,
        batches = s.batches_text,
        ratio = choice.ratio,
        low = choice.low,
        high = choice.high,
        pairs = choice.samples,
        decided = choice.decided,
        shard = s.shard.text,
        object_bytes = choice.bytes,
    })
end

-- The candidate `name` of a race, whose default is there twice.
local function candidate_of(field, default, name) return field[name == race.twin and default or name] end

-- Calls visit(batch, condition, count) for the batches and conditions of which a round of so many repetitions has
-- `count` times, and returns lists[batch][c] of what it returns.
local function for_all(t, repetitions, visit)
    local lists = {}
    for _, batch in ipairs(t.batches) do
        lists[batch] = {}
        for c, condition in ipairs(t.tuning.conditions) do
            local count = turns(t, repetitions, c)
            if count > 0 then lists[batch][c] = visit(batch, condition, count) end
        end
    end
    return lists
end

-- The times of runner `i`, the candidate `one`, of a round that took so many seconds; they are kept.
local function keep_times(t, samples, i, one, h, repetitions, seconds)
    return for_all(t, repetitions, function(batch, condition)
        local times = round.times(t, samples, i, batch, condition)
        round.log(t, {
            candidate = one.text,
            regime = t.regime,
            status = "ok",
            batch = batch,
            samples_us = times,
            codes = condition.codes,
            tables = condition.tables,
            object_bytes = one.made.bytes,
            round = id_of(t, h),
            place = i,
            seconds = seconds,
        })
        return times
    end)
end

-- Notes whether other work shared the core of a process with `count` runners, at `batch` tokens.
local function note_load(t, samples, count, batch)
    t.rounds = (t.rounds or 0) + 1
    if t.threads > 1 then return end
    local own = samples[string.format("ffn/r%d/%d/uniform_warm", count, batch)]
    if statistics.contended(own.cpu, own.wall) then t.contended = (t.contended or 0) + 1 end
end

-- The records of rounds among `known`, by the round: a list of times that it was measured, each with its seconds, which
-- tell them apart, and records by place, batch and condition. An interruption may have left a part of one.
local function logged_rounds(known)
    local logged, by_seconds = {}, {}
    for _, r in ipairs(known) do
        if r.status == "ok" and r.round then
            local id = string.format("%s %.17g", r.round, r.seconds or 0)
            if not by_seconds[id] then
                by_seconds[id] = { seconds = r.seconds, places = {} }
                logged[r.round] = logged[r.round] or {}
                table.insert(logged[r.round], by_seconds[id])
            end
            by_seconds[id].places[string.format("%d/%d/%s_%s", r.place, r.batch, r.codes, r.tables)] = r
        end
    end
    return logged
end

-- The functions that a race of candidates `field` (by name: { made, text }) of tuning `t` measures with: see race.run.
-- Beside what `round.job` wants, t has measure(job, options), as measure.run (harness/measure/measure.lua), regime,
-- batches, key, cc, run, host, name, keep(record), now() in seconds, and known, the records of an earlier run; and
-- left(), the seconds after which a round gives nil.
function round.measurer(t, field, default)
    local logged = logged_rounds(t.known or {})
    local screened = setmetatable({ batches = round.screened(t.batches) }, { __index = t })
    local function of_phase(h) return h.phase == "halving" and screened or t end

    local function measured(names, repetitions, seed, h)
        local own, runners, start = of_phase(h), {}, t.now()
        for i, name in ipairs(names) do
            runners[i] = { made = candidate_of(field, default, name).made, regime = t.regime }
        end
        local job = round.job(t, runners, own.batches, #t.tuning.conditions, repetitions, seed)
        local samples = t.measure(job, { left = t.left() })
        if not samples then return nil end
        local result, seconds = {}, math.max(t.now() - start, 1e-9)
        for i, name in ipairs(names) do
            local one = candidate_of(field, default, name)
            result[name] = means(own, keep_times(own, samples, i, one, h, repetitions, seconds), repetitions)
        end
        note_load(t, samples, #names, own.batches[#own.batches])
        return result
    end

    -- What the records in `places` say of the round, nil: they are not whole.
    local function told(h, places)
        local own, result, whole = of_phase(h), {}, true
        for i, name in ipairs(h.names) do
            local text = candidate_of(field, default, name).text
            local lists = for_all(own, h.repetitions, function(batch, condition, count)
                local r = places[string.format("%d/%d/%s_%s", i, batch, condition.codes, condition.tables)]
                whole = whole and r ~= nil and r.candidate == text and #r.samples_us == count
                return r and r.samples_us
            end)
            if not whole then return nil end
            result[name] = means(own, lists, h.repetitions)
        end
        return result
    end

    local function known(h)
        for _, one in ipairs(logged[id_of(t, h)] or {}) do
            local result = told(h, one.places)
            if result then return result, one.seconds end
        end
    end

    return {
        measure = measured,
        confirm = function(names, repetitions, _, h) return measured(names, repetitions, nil, h) end,
        known = known,
    }
end

return round
