-- What tuning needs to know of LookupFFNs; harness/families/list.lua says what the fields mean.
local combinations = require "harness.measure.combinations"
local compile = require "harness.base.compile"
local cpus = require "harness.base.cpus"
local integer_sums = require "gen.families.lookup.integer_sums"
local packed = require "harness.families.lookup.packed"
local plan = require "gen.families.lookup.plan"
local rivals = require "harness.measure.rivals"
local timed_calls = require "harness.families.lookup.timed_calls"
local verify = require "harness.families.lookup.verify"

local tuning = {
    types_text = "tables in %s, projection in %s",
    rivals = rivals.as_wide_as "f32",
    estimate = require "harness.families.lookup.estimate",
    rules = require "harness.families.lookup.rules",
    -- Tables in the caches and codes that are all equally likely, codes as skewed as those of text, tables that other
    -- work has driven out of the caches.
    conditions = {
        { codes = "uniform", tables = "warm" },
        { codes = "skewed", tables = "warm" },
        { codes = "uniform", tables = "cold" },
    },
}

tuning.check_weights = packed.check

-- By --projection, --tables and --tuned.
function tuning.combinations(options)
    return options.arithmetic ~= "integer" and combinations.combined(options, {
        { "projection", combinations.types "projection", "f32" },
        { "tables", combinations.types "tables", "f32" },
        combinations.tuned(options),
    })
end

-- The reference's answers are made now: they take longer than verifying a candidate.
function tuning.prepare(p, directory, options)
    local files = packed.make(p, directory, options)
    verify.reference_of(p, files, options.seed)
    return files
end

function tuning.batches() return "1,8,64,512,4096" end

function tuning.check_batches() end

function tuning.types(options) return { options.tables or "f32", options.projection or "f32" } end

function tuning.sample(m) return m end

function tuning.integer_sums(p, v) return integer_sums.words(p.shape, v.isa, v.schedule["gather.byte_scores"]) end

function tuning.failures(list, regime, o, options)
    local failures = {}
    local wanted = {
        only = regime,
        bind_known = true, -- no schedule changes what bind refuses
        left = options.left,
        quick = options.quick,
        at_once = cpus.count(),
        device = o.device,
    }
    for i, results in ipairs(verify.all(list, o.files, o.seed, o.threads, wanted)) do
        for _, result in ipairs(results) do
            for _, row in ipairs(result.checks) do
                local failure = not row.ok and string.format("%s %s: %s", result.regime, row.name, row.detail)
                failures[i] = failures[i] or failure
            end
        end
    end
    return failures
end

-- The measuring process' description of the kernels of `regime` ("both": of the whole model) in `made`
-- (harness/tune/build.lua).
local function describe(made, regime, threads)
    local p = made.plan
    local v = p.variants[1]
    local variant = compile.describe(p, v, made.library, regime, threads)
    if threads == 1 and regime ~= "both" then variant.ffn = plan.named(v, regime).names.ffn end
    variant.least_batch, variant.most_batch = 1, 1 << 20
    return variant
end

function tuning.job(t, runners, batches, count, repetitions, order_seed, seconds_a_sample)
    local p, variants = runners[1].made.plan, {}
    local job = {
        model = p.model.name,
        d = p.shape.d,
        d_out = p.shape.d_out,
        baseline_hidden = p.dense_hidden,
        seed = t.seed,
        batches = batches,
        threads = t.threads,
        repetitions = repetitions,
        min_time = seconds_a_sample,
        slices = 4,
        order_seed = order_seed or false,
        least_tokens = t.device and t.device.unit and 8 or nil, -- RAM is small there, and has no caches
        conditions = table.move(tuning.conditions, 1, count, 1, {}),
        take_turns = true,
        alike = true,
        sweep_bytes = t.sweep_bytes,
    }
    for i, runner in ipairs(runners) do
        variants[i] = describe(runner.made, runner.regime, t.threads)
        variants[i].name, variants[i].blob = "r" .. i, t.files.output
    end
    return timed_calls.add(job, variants)
end

return tuning
