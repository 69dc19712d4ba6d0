-- The dense FFN of lookupc's own that a LookupFFN is timed beside: the MLP of a block, d -> f -> d with GELU, emitted
-- for one instruction set.
local model_file = require "gen.families.model_file"
local plan = require "gen.families.model.plan"
local timed_calls = require "harness.families.model.timed_calls"
local timed_parts = require "harness.families.model.timed_parts"

local own_mlp = {}

-- A part of a block as gen/families/model/blocks/run.lua takes it: the MLP alone, which reads the block's input.
local function mlp_alone(maps, _, after)
    local left, from = {}, "in"
    for _, step in ipairs(after) do
        local letter = step.op == "round" and step.letter or step.op == "product" and step.map.letter
        if letter == "M" then
            local own = { from = step.op == "round" and "in" or from, source = "in" }
            if step.op == "round" then
                own.rounded, from = "in_rounded", "in_rounded"
            end
            left[#left + 1] = setmetatable(own, { __index = step })
        elseif step.op == "activate" or letter == "O" then
            left[#left + 1] = step
        end
    end
    left[#left + 1] = { op = "output", from = "out" }
    return maps, {}, left
end

-- That MLP for calls of up to `tokens` tokens, weights and inputs of the type `type`, verified: { isa, type, rel_err,
-- add, row }; rel_err: of a block that has it. add(job) adds it to a job of the measuring process whose memory has
-- tokens as "uniform" and room for results as "y"; row(call, batch, places): a call of that name.
function own_mlp.of(d, f, type, isa, tokens, options)
    local m = assert(model_file.validate({
        name = "own_mlp",
        d = d,
        heads = 1,
        layers = 1,
        vocab = 1,
        attention = { eliminate = "none", context = tokens },
        ffn = { kind = "mlp", f = f, activation = "gelu" },
    }, "", "own_mlp"))
    local types = { type = type, activations = type }
    local whole = plan.build(m, { isa }, types)
    types.part = mlp_alone
    local p = plan.build(timed_parts.changed(m, { name = "own_mlp_alone" }), { isa }, types)
    p.digest = whole.digest
    local given = setmetatable({ large = true, exact = true, threads = 1, weights = false }, { __index = options })
    local library, prepared, _, rel_err = timed_calls.verified("the MLP of --rivals", whole, given, { p })
    local name = "own_mlp_" .. type
    local entry = timed_calls.entry(p, name, library, prepared.blob)
    local made = { isa = isa.name, type = type, rel_err = rel_err }
    function made.add(job)
        table.insert(job.libraries, entry.library)
        table.insert(job.memory, { name = name .. " scratch", bytes = p.scratch_bytes })
    end
    function made.row(call, batch, places)
        local x, scratch = { memory = "uniform", place = 4 * d * batch }, name .. " scratch"
        local arguments = { "weights", scratch, x, "y", 0, batch, scratch } -- nothing is cached
        local step = { library = name, ["function"] = p.names.prefill, status = true, arguments = arguments }
        return { name = call, places = places, steps = { step } }
    end
    return made
end

return own_mlp
