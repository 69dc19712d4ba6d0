-- One round of a race: a job for the measuring process, the times it gives, and their records in the log.
local log = require "harness.tune.log"
local measure = require "harness.measure.measure"
local process = require "process"
local race = require "harness.tune.race"
local record = require "harness.tune.record"
local statistics = require "harness.base.statistics"

local round = {}

round.seconds_a_sample = 0.012

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

-- The functions that a race of candidates `field` (by name: { made, text }) of tuning `t` measures with: see race.run.
-- Beside what `round.job` wants, t has regime, batches, key, cc, run, host, log (path), now() in seconds, and known,
-- the records that the log had; and left(), the seconds after which a round gives nil.
function round.measurer(t, field, default)
    local function candidate(name) return field[name == race.twin and default or name] end

    local function measured(names, repetitions, seed, h)
        local runners = {}
        for i, name in ipairs(names) do
            runners[i] = { made = candidate(name).made, regime = t.regime }
        end
        local start = t.now()
        local samples =
            measure.run(round.job(t, runners, t.batches, #t.tuning.conditions, repetitions, seed), { left = t.left() })
        if not samples then return nil end
        local result, seconds = {}, math.max(t.now() - start, 1e-3)
        for i, name in ipairs(names) do
            local lists = {}
            for _, batch in ipairs(t.batches) do
                lists[batch] = {}
                for c, condition in ipairs(t.tuning.conditions) do
                    if turns(t, repetitions, c) > 0 then
                        lists[batch][c] = round.times(t, samples, i, batch, condition)
                        log.append(
                            t.log,
                            record.make {
                                key = t.key,
                                candidate = candidate(name).text,
                                regime = t.regime,
                                cc = t.cc,
                                status = "ok",
                                batch = batch,
                                samples_us = lists[batch][c],
                                codes = condition.codes,
                                tables = condition.tables,
                                object_bytes = candidate(name).made.bytes,
                                round = id_of(t, h),
                                place = i,
                                seconds = seconds,
                                run = t.run,
                                host = t.host,
                                time = process.time(),
                            }
                        )
                    end
                end
            end
            result[name] = means(t, lists, repetitions)
        end
        if t.threads == 1 then
            local own = samples[string.format("ffn/r%d/%d/uniform_warm", #names, t.batches[#t.batches])]
            if statistics.contended(own.cpu, own.wall) then t.contended = (t.contended or 0) + 1 end
        end
        t.rounds = (t.rounds or 0) + 1
        return result
    end

    local logged = {}
    for _, r in ipairs(t.known or {}) do
        if r.status == "ok" and r.round then
            local places = logged[r.round] or {}
            logged[r.round] = places
            places[string.format("%d/%d/%s_%s", r.place, r.batch, r.codes, r.tables)] = r
        end
    end

    return {
        measure = measured,
        confirm = function(names, repetitions, _, h) return measured(names, repetitions, nil, h) end,
        known = function(h)
            local places, result, seconds = logged[id_of(t, h)] or {}, {}, nil
            for i, name in ipairs(h.names) do
                local lists = {}
                for _, batch in ipairs(t.batches) do
                    lists[batch] = {}
                    for c, condition in ipairs(t.tuning.conditions) do
                        local r = places[string.format("%d/%d/%s_%s", i, batch, condition.codes, condition.tables)]
                        local wanted = turns(t, h.repetitions, c)
                        if wanted > 0 and (not r or r.candidate ~= candidate(name).text or #r.samples_us ~= wanted) then
                            return nil
                        end
                        lists[batch][c], seconds = r and r.samples_us, r and r.seconds or seconds
                    end
                end
                result[name] = means(t, lists, h.repetitions)
            end
            return result, seconds
        end,
    }
end

return round
