-- What tuning asks of whole models: their schedule is that of their blocks, which are timed as a transformer of the run
-- of equal blocks with most weights. harness/families/list.lua says what the fields mean.
local blob = require "gen.plan.blob"
local blocks = require "harness.families.model.blocks.tuning"
local layout = require "gen.families.model.blocks.layout"
local memory = require "gen.families.model.memory"
local misuse = require "gen.model.misuse"
local transformer = require("gen.families.model.family").blocks
local rules = require "gen.families.model.model"

local tuning = setmetatable({}, { __index = blocks })

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

function tuning.batches(m)
    if m.attention.causal then return blocks.batches(m) end
    return most_tokens(m) > 1 and "1," .. math.min(512, most_tokens(m)) or "1"
end

function tuning.check_batches(m, batches)
    if m.attention.causal then return blocks.check_batches(m, batches) end
    local largest, most = math.max(table.unpack(batches)), most_tokens(m)
    if largest > most then
        local form = "--batch: %d: must be at most %d, the sequences of %s that go through its blocks together"
        misuse(form:format(largest, most, m.name))
    end
end

function tuning.check_weights(_, options)
    misuse("--weights: " .. options.weights .. ": is not for whole models, whose blocks are timed with random ones")
end

function tuning.sample(m, p, caches, options)
    if options.threads > 1 then
        misuse("--threads: " .. options.threads .. ": blocks of whole models are tuned for one thread")
    end
    local own = largest_of(m, p)
    options = options_of(m, own, options)
    local of = transformer.build(own, { p.variants[1].isa }, options)
    return blocks.sample(own, of, caches, options), transformer, options
end

-- Blocks of model `m`.
tuning.count = rules.count

return tuning
