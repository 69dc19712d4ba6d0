-- How well a model stands in for another one on text that is held out: nats a token of a decoder, and how far its
-- predictions are from the other's; or how far the results of an encoder are turned away.
local activations = require "harness.convert.activations"
local rows = require "rows"

local evaluation = {}

-- Of a decoder of plan `p` on a batch: the sum of the surprisals, the sum of the divergences of its predictions from
-- those of `teacher`, and how many tokens it predicts.
local function predictions(p, model, teacher, batch)
    local sum, divergence, count = 0.0, 0.0, 0
    for _, ids in ipairs(batch.ids) do
        if #ids > 1 then
            local known = table.move(ids, 1, #ids - 1, 1, {})
            local logits = assert(model:state():prefill_all(known))
            sum = sum + rows.surprisal(logits, p.widths.out, table.move(ids, 2, #ids, 1, {}))
            local wanted = assert(teacher:state():prefill_all(known))
            divergence, count = divergence + rows.divergence(wanted, p.widths.out, logits), count + #known
        end
    end
    return sum, divergence, count
end

-- The sum of the cosines of the rows in the strings a and b, and how many there are.
local function cosines(a, b, width)
    local sum, count = 0.0, 0
    a, b = rows.floats(a), rows.floats(b)
    for row = 0, #a // width - 1 do
        local ab, aa, bb = 0.0, 0.0, 0.0
        for k = row * width + 1, (row + 1) * width do
            ab, aa, bb = ab + a[k] * b[k], aa + a[k] * a[k], bb + b[k] * b[k]
        end
        sum, count = sum + ab / math.sqrt(aa * bb), count + 1
    end
    return sum, count
end

-- The metric of the dense model `teacher` of plan `p` on the batches of `test`: a function of another model and its
-- plan that returns a line for people, and the loss: nats a token, or 1 - mean cosine.
function evaluation.new(p, teacher, test)
    local nats -- of the dense model
    local function of_decoder(plan, model)
        local sum, divergence, count = 0.0, 0.0, 0
        for _, batch in ipairs(test) do
            local more, further, tokens = predictions(plan, model, teacher, batch)
            sum, divergence, count = sum + more, divergence + further, count + tokens
        end
        return sum / count, divergence / count
    end
    if p.causal and p.model.output and p.model.output.head then
        return function(plan, model)
            nats = nats or of_decoder(p, teacher)
            local own, loss = of_decoder(plan, model)
            return string.format("%.4f nats a token, dense %.4f, divergence %.4f", own, nats, loss), loss
        end
    end
    local what, wanted = p.output.pool and "vectors" or "states", {} -- results of the dense model, by batch
    return function(plan, model)
        local sum, count = 0.0, 0
        for i, batch in ipairs(test) do
            wanted[i] = wanted[i] or activations.states(p, teacher, batch.ids)
            local found = activations.states(plan, model, batch.ids)
            local more, tokens = cosines(found, wanted[i], p.widths.out)
            sum, count = sum + more, count + tokens
        end
        local mean = sum / count
        return string.format("mean cosine to the dense model's %s %.4f", what, mean), 1 - mean
    end
end

return evaluation
