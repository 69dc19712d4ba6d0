-- Fits the lookup FFN of one block to a dense FFN, on what texts bring to it.
local activations = require "harness.convert.activations"
local ffn_parts = require "gen.schema.ffn_parts"
local host = require "host"
local kept_neurons = require "harness.convert.kept_neurons"
local kernels = require "harness.convert.kernels"
local process = require "process"

local fitting = {}

fitting.batch_tokens = 1024 -- of a step
local most_tokens = 4096 -- of a call
local observed = 16 -- batches of which the first moments are known
local imitation_steps = 400
local sweeps, ridge = 5, 10
-- Rates: of tables and bias, and shares of the deviation of the projection's random folded weights.
local table_rate, bias_rate, projection_rate, imitation_rate = 4.7e-3, 2e-3, 0.034, 0.3
local warm_up = 0.03

-- The factor of all rates in step `step` of `steps`: a linear rise, then a linear fall to nearly nothing.
function fitting.rate_at(step, steps)
    local rise = warm_up * steps
    return step < rise and step / rise or (steps - step + 1) / steps
end

-- Fits layer `layer` (from 0), whose block has a lookup FFN, to the FFN `dense`, whose strongest neurons stay where the
-- block has a dense FFN beside it. states(batch): what the FFN reads of a batch of `text`. Returns { unexplained, used,
-- entropy, missed: by the imitation of neurons, or nil, seconds }, and by name the tensors: { shape, bytes }.
function fitting.run(c, layer, block, dense, text, states)
    local options, start = c.options, process.cpu()
    local fit, p = kernels.fit(block, dense, c.sets, most_tokens, c.rounds, options)
    local shape = p.shape
    local deviation = (shape.kind == "bh4" and shape.padded or shape.d) ^ -0.5 -- of folded weights
    fit:random(options.seed + layer, deviation * (shape.kind == "bh4" and shape.block or 1) ^ -0.5)
    local train, missed = text.train, nil
    local function say(what, step, steps)
        host.status(string.format("layer %d: %s, %d of %d batches", layer, what, step, steps))
    end
    for i = 1, math.min(observed, #train) do
        fit:observe(states(train[i]))
        say("observing", i, observed)
    end
    local beside = ffn_parts.dense(block.ffn)
    local kept = beside and assert(fit:keep(beside.f))
    fit:centre()
    if options.method == "hash-w" then
        fit:hash_rows()
    else
        missed = assert(fit:imitate(options.seed + layer, imitation_steps, imitation_rate * deviation))
        if options.quick then
            local collected, number = 0, 0
            while number < #train and collected < options.tokens do
                number = number + 1
                assert(fit:collect(states(train[number])))
                collected = collected + train[number].tokens
                say("collecting", number, #train)
            end
            assert(fit:solve(sweeps, ridge))
        else
            local steps = math.max(1, options.tokens // fitting.batch_tokens)
            for step = 1, steps do
                local share = fitting.rate_at(step, steps)
                local batch = train[(step - 1) % #train + 1]
                local projection = share * projection_rate * deviation
                fit:step(states(batch), step, projection, share * table_rate, share * bias_rate)
                if step % 8 == 0 then say("learning", step, steps) end
            end
        end
    end
    for _, batch in ipairs(text.test) do
        fit:measure(states(batch))
    end
    host.status ""
    local tensors = beside and kept_neurons.tensors(c.target, block, layer, dense, kept) or {}
    for _, tensor in ipairs(activations.ffn_tensors(c.target, block, layer)) do
        tensors[tensor.name] = { shape = tensor.shape, bytes = fit:field(tensor.field) }
    end
    local unexplained, used, entropy = fit:figures()
    return {
        unexplained = unexplained,
        used = used,
        entropy = entropy,
        missed = missed,
        seconds = process.cpu() - start,
    }, tensors
end

return fitting
