-- The family of dense FFNs that LookupFFNs replace, to be counted beside them; gen/families/list.lua says what its
-- fields mean.
local later = require "gen.host.later"

local plan = later "gen.families.baseline.plan"

local family = {
    name = "baseline",
    noun = "dense FFN",
    model = require "gen.families.lookup.model",
    options = { "arithmetic", "baseline", "projection", "prefix" },
    types = { "projection" },
    print = later "gen.families.baseline.print",
    pack_options = " --baseline",
    wrapper = "ffn",
    input = "float",
    output = "float",
    exact = false,
}

function family.takes(options) return options.baseline end

function family.build(m, isas, options)
    local integer = options.arithmetic == "integer"
    return plan.build(m, isas, integer, options.projection)
end

function family.isa_types() return {} end

function family.sizes(p)
    local integer = p.arithmetic ~= nil
    local list = {
        { "d", "input width" },
        { "d_out", "output width" },
        { "scratch_bytes", "that a call works in" },
        { "scratch_bytes_one", "that a call of one token works in", value = p.names.macro "SCRATCH_BYTES" },
        { "x_type", "of x", text = integer and "i16" or "f32" },
        { "y_type", "of y", text = integer and "i32" or "f32" },
    }
    if integer then
        list[#list + 1] = { "x_scale", "x stands for x times this", kind = "number" }
        list[#list + 1] = { "y_scale", "y stands for y times this", kind = "number" }
    end
    return list
end

function family.left_out(_, name)
    if name:find "LayerNorm%.%a+$" then return "gain and offset of the norm are part of ffn.first" end
end

function family.packed_text(_, errors)
    local text = "relative error %.2g and %.2g"
    return text:format(errors.first, errors.second)
end

return family
