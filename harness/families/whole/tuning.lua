-- What tuning asks of whole models: their schedule is that of their blocks, which are timed as a transformer of the run
-- of equal blocks with most weights. harness/families/list.lua says what the fields mean.
local blocks = require "harness.families.transformer.tuning"
local transformer = require "gen.families.transformer.family"
local validated = require "gen.model.validated"
local whole_model = require "gen.families.whole.model"

local tuning = setmetatable({}, { __index = blocks })

local function largest_of(m, p)
    local found = 1
    for i, segment in ipairs(p.segments) do
        local best = p.segments[found].plan
        if segment.plan.packed_bytes - segment.plan.sections[1].at > best.packed_bytes - best.sections[1].at then
            found = i
        end
    end
    return validated.note_part(whole_model.segments(m)[found], m)
end

-- The options for blocks `m` alone: types of LookupFFNs are for other blocks where these have none.
local function options_of(m, options)
    if m.ffn.kind == "lookup" then return options end
    return setmetatable({ projection = false, tables = false }, { __index = options })
end

function tuning.check_weights(_, options)
    error("--weights: " .. options.weights .. ": is not for whole models, whose blocks are timed with random ones", 0)
end

function tuning.sample(m, p, caches, options)
    if options.threads > 1 then
        error("--threads: " .. options.threads .. ": blocks of whole models are tuned for one thread", 0)
    end
    local own = largest_of(m, p)
    options = options_of(own, options)
    local of = transformer.build(own, { p.variants[1].isa }, options)
    return blocks.sample(own, of, caches, options), transformer, options
end

-- Blocks of model `m`.
tuning.count = whole_model.count

return tuning
