-- What tuning asks of transformers; harness/families/list.lua says what the fields mean.
local execute = require "harness.families.model.blocks.execute"
local dtype = require "gen.plan.dtype"
local json = require "json"
local misuse = require "gen.model.misuse"
local parts = require "harness.families.model.blocks.parts"
local process = require "process"

local tuning = {
    types_text = "weights in %s, cache in %s",
    estimate = require "harness.families.model.blocks.estimate",
    rules = {}, -- a schedule that is legal is small enough
    conditions = { { codes = "uniform", tables = "warm" } }, -- what tokens are is all the same to these kernels
}

-- Weights that are given are those of the whole model.
function tuning.sample(m, p, caches, options) return options.weights and m or parts.sample(m, p, caches) end

function tuning.batches(m) return m.attention.context > 1 and "1," .. math.min(512, m.attention.context) or "1" end

function tuning.check_batches(m, batches)
    local attention, largest = m.attention, math.max(table.unpack(batches))
    if not (attention.window and attention.causal) and largest > attention.context then
        misuse(string.format("--batch: %d: must be at most attention.context = %d", largest, attention.context))
    end
end

function tuning.types(options)
    local activations = options.activations ~= "f32" and options.activations or nil
    local cache = dtype.cached(options.cache, activations and dtype.get(activations, "activations"))
    return { options.type or "f32", cache.name, activations, options.tables or nil, options.projection or nil }
end

function tuning.gather_i8() return false end

tuning.check_weights = execute.check_weights

function tuning.prepare(p, directory, options)
    local prepared = execute.prepare(p, directory, setmetatable({ large = true }, { __index = options }))
    prepared.output = prepared.blob
    return prepared
end

-- Why the blocks of `made` are wrong, "" if they are not.
local function failure_of(made, o)
    for _, result in ipairs(execute.check_library(made.plan, made.library, o.files)) do
        if not result.ok then return string.format("%s: %s", result.call, result.message) end
    end
    return ""
end

-- The reference of blocks takes long and cannot be asked to end: it is ended with its process.
function tuning.failures(list, _, o, options)
    local failures, start = {}, process.clock()
    for i, made in ipairs(list) do
        local left = options.left and math.max(0, options.left - (process.clock() - start))
        local failure, message = process.isolated(function() return failure_of(made, o) end, left)
        failures[i] = not failure and message or failure ~= "" and failure or nil
    end
    return failures
end

-- Tokens from position 0 on; all share one cache.
function tuning.job(t, runners, batches, count, repetitions, order_seed, seconds_a_sample)
    local p = runners[1].made.plan
    local job = {
        model = p.model.name,
        seed = t.seed,
        threads = 1,
        repetitions = repetitions,
        min_time = seconds_a_sample,
        slices = 4,
        draw_order = order_seed ~= nil,
        order_seed = order_seed or 0,
        alike = true,
        sweep_bytes = 0,
        limits = false,
        d = math.max(p.shape.input, p.shape.d),
        cache_bytes = p.cache_bytes,
        fill = "r1",
        filled = 0,
        heads = p.shape.heads,
        kv_heads = p.shape.kv_heads,
        width = p.shape.width,
        layers = p.shape.layers,
        causal = p.shape.causal,
        sequence = p.shape.sequences and p.model.attention.context or 0,
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
                        tuning.conditions[c].codes,
                        tuning.conditions[c].tables
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

return tuning
