-- One heat of a race: a job for the measuring process, the times it gives, and their records in the log.
local compile = require "harness.base.compile"
local json = require "json"
local log = require "harness.tune.log"
local measure = require "harness.measure.measure"
local parts = require "harness.families.transformer.parts"
local process = require "process"
local race = require "harness.tune.race"
local record = require "harness.tune.record"
local statistics = require "harness.base.statistics"

local heat = {}

local seconds_a_sample = 0.02

-- What the repetitions of a race find, one after the other: tables in the caches and codes that are all equally likely,
-- codes as skewed as those of text, tables that other work has driven out of the caches.
heat.conditions = {
    { codes = "uniform", tables = "warm" },
    { codes = "skewed", tables = "warm" },
    { codes = "uniform", tables = "cold" },
}

-- Those that matter to session `t`: what tokens are is all the same to blocks of transformers.
function heat.conditions_of(t) return t.model.attention and { heat.conditions[1] } or heat.conditions end

-- The measuring process' description of the kernels of `regime` ("both": of the whole model) in `made`
-- (harness/tune/build.lua).
local function describe(made, regime, threads)
    local p = made.plan
    local v = p.variants[1]
    local variant = compile.describe(p, v, made.library, regime, threads)
    if threads == 1 and regime ~= "both" then variant.ffn = regime == "few" and v.few.names.ffn or v.names.many end
    variant.least_batch, variant.most_batch = 1, 1 << 20
    return variant
end

-- The same job for blocks of transformers: tokens from position 0 on; all share one cache.
local function blocks_job(t, runners, batches, count, repetitions, order_seed)
    local p = runners[1].made.plan
    local job = {
        model = p.model.name,
        seed = t.seed,
        threads = 1,
        repetitions = repetitions,
        min_time = seconds_a_sample,
        draw_order = order_seed ~= nil,
        order_seed = order_seed or 0,
        alike = true,
        sweep_bytes = 0,
        limits = false,
        d = p.shape.input,
        cache_bytes = p.cache_bytes,
        fill = "r1",
        filled = 0,
        heads = p.shape.heads,
        kv_heads = p.shape.kv_heads,
        width = p.shape.width,
        layers = p.shape.layers,
        causal = p.shape.causal,
        transformers = {},
        calls = {},
        reads = json.array {},
        products = json.array {},
        product_calls = json.array {},
        attention_calls = json.array {},
    }
    for i, runner in ipairs(runners) do
        local of = runner.made.plan
        job.transformers[i] = {
            name = "r" .. i,
            library = runner.made.library,
            bind = of.names.bind,
            call = parts.call(of),
            blob = t.files.output,
            scratch_bytes = of.scratch_bytes,
            weights_struct_bytes = of.weights_struct_bytes,
        }
        for _, batch in ipairs(batches) do
            for c = 1, count do
                table.insert(job.calls, {
                    name = string.format(
                        "ffn/r%d/%d/%s_%s",
                        i,
                        batch,
                        heat.conditions[c].codes,
                        heat.conditions[c].tables
                    ),
                    transformer = "r" .. i,
                    tokens = batch,
                    position = 0,
                })
            end
        end
    end
    return job
end

-- A job that times runners { made, regime }, called r1, r2, …, at `batches` tokens, in repetitions that take turns in
-- the first `count` of the conditions; `t` says with what: files, threads, seed, sweep_bytes.
function heat.job(t, runners, batches, count, repetitions, order_seed)
    if t.model.attention then return blocks_job(t, runners, batches, count, repetitions, order_seed) end
    local p, names = runners[1].made.plan, {}
    for i = 1, count do
        names[i] = heat.conditions[i].codes .. "_" .. heat.conditions[i].tables
    end
    local job = {
        model = p.model.name,
        d = p.shape.d,
        d_out = p.shape.d_out,
        h = p.shape.h,
        tau = p.shape.tau,
        neighbours = p.shape.neighbours,
        dense_hidden = p.dense_hidden,
        seed = t.seed,
        batches = batches,
        threads = t.threads,
        repetitions = repetitions,
        min_time = seconds_a_sample,
        draw_order = order_seed ~= nil,
        order_seed = order_seed or 0,
        stages = false,
        conditions = names,
        take_turns = true,
        alike = true,
        sweep_bytes = t.sweep_bytes,
        dense = json.array {},
        limits = false,
        variants = {},
    }
    for i, runner in ipairs(runners) do
        job.variants[i] = describe(runner.made, runner.regime, t.threads)
        job.variants[i].name, job.variants[i].blob = "r" .. i, t.files.output
    end
    return job
end

-- The times a token, in µs, that the repetitions of `condition` gave runner `i` of a job.
function heat.times(t, samples, i, batch, condition)
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
    local result, count = {}, #heat.conditions_of(t)
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
local function turns(t, repetitions, c) return (repetitions - c) // #heat.conditions_of(t) + 1 end

-- The name under which a race knows the heat, in the log.
local function id_of(t, h) return t.regime .. " " .. h.id end

-- The functions that a race of candidates `field` (by name: { made, text }) of tuning `t` measures with: see race.run.
-- Beside what `heat.job` wants, t has regime, batches, key, cc, run, host, log (path), now() in seconds, and known, the
-- records that the log had.
function heat.measurer(t, field, default)
    local function candidate(name) return field[name == race.twin and default or name] end

    local function measured(names, repetitions, seed, h)
        local runners = {}
        for i, name in ipairs(names) do
            runners[i] = { made = candidate(name).made, regime = t.regime }
        end
        local start = t.now()
        local samples = measure.run(heat.job(t, runners, t.batches, #heat.conditions_of(t), repetitions, seed), {})
        local result, seconds = {}, math.max(t.now() - start, 1e-3)
        for i, name in ipairs(names) do
            local lists = {}
            for _, batch in ipairs(t.batches) do
                lists[batch] = {}
                for c, condition in ipairs(heat.conditions_of(t)) do
                    if turns(t, repetitions, c) > 0 then
                        lists[batch][c] = heat.times(t, samples, i, batch, condition)
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
                                heat = id_of(t, h),
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
        t.heats = (t.heats or 0) + 1
        return result
    end

    local logged = {}
    for _, r in ipairs(t.known or {}) do
        if r.status == "ok" and r.heat then
            local places = logged[r.heat] or {}
            logged[r.heat] = places
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
                    for c, condition in ipairs(heat.conditions_of(t)) do
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

return heat
