-- The family of LookupFFNs without floating point; gen/families/list.lua says what its fields mean.
local later = require "gen.host.later"
local model = require "gen.families.lookup.model"

local describe = later "gen.families.lookup.describe"
local firmware = later "gen.families.lookup.firmware"
local plan = later "gen.families.integer.plan"

local family = {
    name = "integer",
    noun = "LookupFFN in integers",
    model = model,
    options = { "arithmetic", "tables", "projection", "prefix", "blocks-in-out" },
    types = { "tables", "projection" },
    print = later "gen.families.integer.print",
    pack_options = " --arithmetic integer",
    wrapper = "ffn",
    input = "int16_t",
    output = "int32_t",
    exact = true,
    left_out = model.left_out,
    firmware = later(function()
        return firmware.of(function() return "scalar" end)
    end),
}

function family.packed_text(...) return describe.packed_text(...) end

function family.takes(options) return not options.baseline and options.arithmetic == "integer" end

function family.build(m, isas, options)
    local tables, projection = options.tables, options.projection
    return plan.build(m, isas, tables, projection, options.firmware)
end

function family.isa_types() return {} end

local function add_units(p, add)
    add("integers", string.format("x int16 in units of %g, y int32 in units of 2^-%d", p.unit, p.fraction))
end

function family.describe(...) return describe.with(add_units)(...) end

function family.sizes(p)
    local list = {
        { "d", "input width" },
        { "d_out", "output width" },
        { "tables", "hash tables" },
        { "tau", "bits of a code" },
        { "scratch_bytes", "that a call works in" },
        { "scratch_bytes_one", "that a call of one token works in", value = p.names.macro "SCRATCH_BYTES" },
        { "x_type", "of x", text = "i16" },
        { "y_type", "of y", text = "i32" },
        { "x_scale", "x stands for x times this", kind = "number" },
        { "y_scale", "y stands for y times this", kind = "number" },
        { "projection_type", "of the projection's weights", text = p.projection.name },
    }
    if p.shape.neighbours > 1 then table.insert(list, 5, { "neighbours", "rows that a token takes of a table" }) end
    return list
end

function family.summary(_, make)
    local p = make()
    return describe.summary(p, { arithmetic = "integer", x_scale = p.unit, y_scale = 2.0 ^ -p.fraction })
end

return family
