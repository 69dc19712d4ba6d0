-- The family of transformers; gen/families/list.lua says what its fields mean.
local checkpoint = require "gen.model.checkpoint_names"
local describe = require "gen.families.transformer.describe"
local dtype = require "gen.plan.dtype"
local plan = require "gen.families.transformer.plan"

local family = {
    name = "transformer",
    noun = "transformer",
    model = require "gen.families.transformer.model",
    options = { "type", "cache", "decode", "position", "schedule", "for", "tuned", "unfused" },
    types = { "type", "cache" },
    space = require "gen.families.transformer.schedule",
    print = require "gen.families.transformer.print",
    pack_options = "",
    input = "float",
    output = "float",
    exact = false,
    describe = describe.lines,
    summary = describe.summary,
    packed_text = describe.packed_text,
    left_out = checkpoint.left_out,
}

function family.takes(options) return not options.baseline and options.arithmetic ~= "integer" end

function family.build(m, isas, options, wanted)
    return plan.build(m, isas, { type = options.type, cache = options.cache, schedule = wanted })
end

-- Integers are summed as floats: they need nothing.
function family.isa_types(options)
    local types = {}
    for _, row in ipairs { dtype.get(options.type, "type"), dtype.get(options.cache, "cache") } do
        if not row.integer_gather then types[#types + 1] = row end
    end
    return types
end

return family
