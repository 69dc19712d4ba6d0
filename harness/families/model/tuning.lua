-- What tuning asks of blocks, and of whole models: their schedule is that of their blocks, which are timed as a
-- transformer of the run of equal blocks with most weights. harness/families/list.lua says what the fields mean.
local blob = require "gen.plan.blob"
local combinations = require "harness.measure.combinations"
local dtype = require "gen.plan.dtype"
local layout = require "gen.families.model.blocks.layout"
local memory = require "gen.families.model.memory"
local misuse = require "gen.schema.misuse"
local process = require "process"
local rules = require "gen.families.model.model"
local setting = require "harness.measure.setting"
local timed_calls = require "harness.families.model.timed_calls"
local timed_parts = require "harness.families.model.timed_parts"
local transformer = require("gen.families.model.family").blocks
local verify = require "harness.families.model.verify"
local verify_blocks = require "harness.families.model.verify_blocks"
local verify_there = require "harness.families.model.verify_there"

local tuning = {
    types_text = "weights in %s, cache in %s",
    estimate = require "harness.families.model.estimate",
    rules = {}, -- a schedule that is legal is small enough
    conditions = { { codes = "uniform", tables = "warm" } }, -- what tokens are is all the same to these kernels
}

-- Weights that are given are those of the whole model.
function tuning.sample(m, p, caches, options) return options.weights and m or timed_parts.sample(m, p, caches) end

function tuning.batches(m) return setting.one_and_many(m.attention.context) end

function tuning.check_batches(m, batches)
    local attention, largest = m.attention, math.max(table.unpack(batches))
    local endless = attention.window and attention.causal and not (attention.full_layers or attention.kind)
    if not endless and largest > attention.context then
        misuse(string.format("--batch: %d: must be at most attention.context = %d", largest, attention.context))
    end
end

function tuning.types(options)
    local activations = options.activations ~= "f32" and options.activations or nil
    local cache = dtype.cached(options.cache, activations and dtype.get(activations, "activations"))
    return { options.type or "f32", cache.name, activations, options.tables or nil, options.projection or nil }
end

function tuning.integer_sums() return false end

tuning.combinations = combinations.of_blocks

tuning.check_weights = verify_blocks.check_weights

function tuning.prepare(p, directory, options)
    local prepared = verify.prepare(p, directory, setmetatable({ large = true }, { __index = options }))
    prepared.output = prepared.blob
    return prepared
end

-- Why the blocks of `made` are wrong, "" if they are not.
local function failure_of(made, o)
    for _, result in ipairs(verify.check_library(made.plan, made.library, o.files)) do
        if not result.ok then return string.format("%s: %s", result.call, result.message) end
    end
    return ""
end

-- The same on a device, which calls all of the list in one program.
local function failures_there(list, o, left)
    local failures, in_time = {}, verify_there.call(o.files, list, left)
    for i, made in ipairs(list) do
        local failure = in_time and failure_of(made, o) or "there was no time for the device"
        failures[i] = failure ~= "" and failure or nil
    end
    return failures
end

-- The reference of blocks takes long and cannot be asked to end: it is ended with its process.
function tuning.failures(list, _, o, options)
    if o.device then return failures_there(list, o, options.left) end
    local failures, start = {}, process.clock()
    for i, made in ipairs(list) do
        local left = options.left and math.max(0, options.left - (process.clock() - start))
        local failure, message = process.isolated(function() return failure_of(made, o) end, left)
        failures[i] = not failure and message or failure ~= "" and failure or nil
    end
    return failures
end

-- Tokens from position t.position on, 0, if absent; all share one cache.
function tuning.job(t, runners, batches, count, repetitions, order_seed, seconds_a_sample)
    local p = runners[1].made.plan
    local job = {
        model = p.model.name,
        seed = t.seed,
        repetitions = repetitions,
        min_time = seconds_a_sample,
        slices = 4,
        order_seed = order_seed or false,
        alike = true,
    }
    local entries = {}
    for i, runner in ipairs(runners) do
        entries[i] = timed_calls.entry(runner.made.plan, "r" .. i, runner.made.library, t.files.output)
    end
    local largest = math.max(table.unpack(batches))
    timed_calls.add(job, entries, math.max(p.shape.input, p.shape.d), largest, p.cache_bytes)
    for i, entry in ipairs(entries) do
        for _, batch in ipairs(batches) do
            for c = 1, count do
                local condition = tuning.conditions[c]
                local name = string.format("ffn/r%d/%d/%s_%s", i, batch, condition.codes, condition.tables)
                table.insert(job.calls, timed_calls.call(job, entry, name, batch, t.position or 0))
            end
        end
    end
    return job
end

local whole = setmetatable({ combinations = false }, { __index = tuning })

local function largest_of(m, p)
    local found = 1
    for i, segment in ipairs(p.segments) do
        local best = p.segments[found].plan
        if segment.plan.packed_bytes - segment.plan.sections[1].at > best.packed_bytes - best.sections[1].at then
            found = i
        end
    end
    return rules.segments(m)[found]
end

-- The options for blocks `own` of model `m` alone, which encode several sequences together as the model does: types of
-- LookupFFNs are for other blocks where these have none.
local function options_of(m, own, options)
    local changes = { sequences = not m.attention.causal and { positions = memory.positions(m) } or nil }
    if options.type then changes.type = dtype.of_parts(options.type).blocks.name end
    if own.ffn.kind ~= "lookup" then
        changes.projection, changes.tables = false, false
    end
    return setmetatable(changes, { __index = options })
end

-- The tokens of a call of encoder `m` at most, in sequences of which all but the last are full.
local function most_tokens(m)
    local context = m.attention.context
    return memory.positions(m) // blob.round_up(context, layout.keys) * context
end

function whole.batches(m)
    return m.attention.causal and tuning.batches(m) or setting.one_and_many(most_tokens(m))
end

function whole.check_batches(m, batches)
    if m.attention.causal then return tuning.check_batches(m, batches) end
    local largest, most = math.max(table.unpack(batches)), most_tokens(m)
    if largest > most then
        local form = "--batch: %d: must be at most %d, the sequences of %s that go through its blocks together"
        misuse(form:format(largest, most, m.name))
    end
end

function whole.check_weights(_, options)
    misuse("--weights: " .. options.weights .. ": is not for whole models, whose blocks are timed with random ones")
end

function whole.sample(m, p, caches, options)
    if options.threads > 1 then
        misuse("--threads: " .. options.threads .. ": blocks of whole models are tuned for one thread")
    end
    local own = largest_of(m, p)
    options = options_of(m, own, options)
    local of = transformer.build(own, { p.variants[1].isa }, options)
    return tuning.sample(own, of, caches, options), transformer, options
end

-- Blocks of model `m`.
whole.count = rules.count

return { blocks = tuning, whole = whole }
