-- How fast each kind of tensor learns: factors of the base rate, weight decay, and the rate over the steps of a run.
local learning_rates = {}

learning_rates.base = 2e-3
-- Optimisers of tables: the rate, or the factor of the base rate that it is.
learning_rates.tables = {
    adagrad = { rate = 0.04, doc = "row-wise Adagrad" },
    adam = { factor = 3, doc = "lazy Adam: rows that a step does not meet stay as they are" },
}
learning_rates.decay = 0.01
learning_rates.warm_up = 0.05 -- share of the steps in which rates rise
learning_rates.last = 0.1 -- of the rate, at the last step
learning_rates.optimiser = { beta1 = 0.9, beta2 = 0.98, epsilon = 1e-8, table_epsilon = 1e-16, clip = 1.0 }

-- One row a kind of tensor: factor of the base rate, and whether weights decay.
local kinds = {
    matrix = { factor = 1, decays = true },
    embedding = { factor = 1 },
    norm = { factor = 1 },
    bias = { factor = 1 },
    scalar = { factor = 1 },
    projection = {},
    tables = { factor = 0 }, -- updated by the kernels, at a rate of their own
}

-- Of a projection: at the full rate all tokens soon have the same code.
local projections = { bh4 = 0.03, dense = 0.3 }

-- How a tensor of kind `kind` learns: { factor, decays }. `projection`: the kind of the model's projections; `wanted`:
-- their factor, nil: the usual one.
function learning_rates.of(kind, projection, wanted)
    local row = kinds[kind] or error("no rate for tensors of kind " .. tostring(kind))
    return { factor = row.factor or wanted or projections[projection], decays = row.decays or false }
end

-- The factor of all rates in step `step` of `steps`: a linear rise, then half a cosine.
function learning_rates.at(step, steps)
    local rise = math.max(1, math.ceil(learning_rates.warm_up * steps))
    if step <= rise then return step / rise end
    local share = (step - rise) / math.max(1, steps - rise)
    return learning_rates.last + (1 - learning_rates.last) * 0.5 * (1 + math.cos(math.pi * share))
end

return learning_rates
