-- `bench --runner`: times the emitted code of models on a device, verified there. Whole models and integers are timed
-- there as here. What else bench compares LookupFFNs and blocks with, dense libraries and the limits of a core, is here
-- only: what is left are times a token, of several tuned files side by side.
local bench_report = require "harness.report.bench_report"
local build = require "harness.tune.build"
local columns = require "harness.report.columns"
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local harness = require "harness.families.list"
local json = require "json"
local process = require "process"
local request = require "gen.request.request"
local round = require "harness.tune.round"
local runnable = require "harness.base.runnable"
local setting = require "harness.measure.setting"
local statistics = require "harness.base.statistics"

local table_columns = columns.of {
    { "isa", -7, "isa" },
    { "types", -20, "types" },
    { "schedule", -16, "tuned" },
    { "tokens", 6, "batch" },
    { "us/token", 9, "us_per_token", "%.2f" },
    { "of first", 8, "times_first", "%.3f" },
}

-- The plans of one choice of types and tuned file, one for each instruction set: { {plan, choice} }.
local function planned(path, family, m, choice)
    local sets = runnable.sets(choice.isa, family.isa_types(choice, m))
    if not choice.isa then sets = { sets[#sets] } end
    local list = {}
    for i, set in ipairs(sets) do
        list[i] = { plan = runnable.plan(path, { set }, choice), choice = choice }
    end
    return list
end

-- What is timed together, as it shares weights: a list of { types, options, {plan, choice}... }.
local function groups_of(path, family, m, hooks, choices)
    local list, known = {}, {}
    for _, choice in ipairs(choices) do
        local types = table.concat(hooks.types(choice), " ")
        if not known[types] then
            known[types] = { types = types, options = choice }
            list[#list + 1] = known[types]
        end
        local own = planned(path, family, m, choice)
        table.move(own, 1, #own, #known[types] + 1, known[types])
    end
    return list
end

-- Compiles and verifies a group. Returns runners as round.job takes them, the first one again at the end, and the
-- packed weights; raises one line for what is wrong.
local function runners_of(path, hooks, group, options)
    local files = hooks.prepare(group[1].plan, process.temporary_directory(), group.options)
    local shop = build.new {
        cc = options.cc,
        version = compilers.version(options.cc),
        cflags = options.cflags,
        threads = 1,
        seed = options.seed,
        files = files,
        device = options.device,
    }
    local plans, runners = {}, {}
    for i, one in ipairs(group) do
        plans[i] = one.plan
    end
    for i, made in ipairs(shop:make(plans)) do
        if made.failure then error(string.format("%s: %s: nothing was timed", path, made.failure), 0) end
        runners[i] = { made = made, regime = "both" }
    end
    runners[#runners + 1] = runners[1]
    return runners, files
end

-- Adds the results of a group, one for each runner and batch.
local function add_results(path, hooks, group, batches, options, results)
    local runners, files = runners_of(path, hooks, group, options)
    local t = { files = files, threads = 1, seed = options.seed, sweep_bytes = 0, tuning = hooks }
    local repetitions, condition = options.repetitions, hooks.conditions[1]
    local seconds = setting.min_time(repetitions)
    local job = hooks.job(t, runners, batches, 1, repetitions * #hooks.conditions, options.seed, seconds)
    local samples = options.device:measure(job, {})
    for _, batch in ipairs(batches) do
        local function time_of(i) return statistics.median(round.times(t, samples, i, batch, condition)) end
        for i, one in ipairs(group) do
            local name = string.format("ffn/r%d/%d/%s_%s", i, batch, condition.codes, condition.tables)
            local share = statistics.of(samples, name, "share")
            results[#results + 1] = {
                model = one.plan.model.name,
                isa = one.plan.variants[1].isa.name,
                types = group.types,
                tuned = one.choice.named,
                batch = batch,
                threads = 1,
                us_per_token = time_of(i),
                times_first = i > 1 and time_of(i) / time_of(1) or nil,
                again_ratio = i == 1 and time_of(#runners) / time_of(1) or nil,
                cpu_over_wall = share,
                counts = statistics.counts(share),
            }
        end
    end
end

-- The report of the model file `path` (harness/report/bench_report.lua).
return function(path, options)
    local m, family = request.model(path, options)
    local of = harness.get(family.name)
    local hooks = of.tuning
    local choices = hooks.combinations and hooks.combinations(options)
    if not choices then return of.bench(path, options) end
    local batches, results = setting.batches(options.batch or hooks.batches(m)), {}
    hooks.check_batches(m, batches)
    for _, group in ipairs(groups_of(path, family, m, hooks, choices)) do
        add_results(path, hooks, group, batches, options, results)
    end
    local sets = runnable.sets(options.isa, family.isa_types(choices[1], m))
    local facts = setting.host_facts(cpu.describe(), sets[#sets], options.cc, options.cflags, {})
    local form = "A/A control: the same kernels measured twice differ by at most %.1f %%."
    local several = #results > #batches and "; of first: over the time of the first one of the same types" or ""
    return bench_report.of_tables {
        title = m.name .. " on a device",
        head = m.name .. " on " .. bench_report.setting(facts, options.cflags, 1),
        tables = { { columns = columns.said(table_columns, results), results = results } },
        notes = {
            "us/token: medians of interleaved CPU times, verified there" .. several .. ".",
            form:format(bench_report.control(results)),
        },
        host = facts,
        threads = 1,
        json = { host = facts, results = json.array(results) },
    }
end
