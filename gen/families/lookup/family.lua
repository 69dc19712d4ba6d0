-- The family of LookupFFNs in floating point; gen/families/list.lua says what its fields mean.
local dtype = require "gen.plan.dtype"
local later = require "gen.host.later"
local misuse = require "gen.model.misuse"
local model = require "gen.families.lookup.model"

local describe = later "gen.families.lookup.describe"
local firmware = later "gen.families.lookup.firmware"
local plan = later "gen.families.lookup.plan"
local sections = later "gen.families.lookup.sections"

local family = {
    name = "lookup",
    noun = "LookupFFN",
    model = model,
    options = {
        "arithmetic",
        "baseline",
        "tables",
        "projection",
        "prefix",
        "blocks-in-out",
        "schedule",
        "for",
        "tuned",
        "threads",
        "html",
        "rivals",
    },
    types = { "tables", "projection" },
    space = later "gen.families.lookup.schedule",
    print = later "gen.families.lookup.print",
    training = later "gen.families.lookup.print_training",
    pack_options = "",
    wrapper = "ffn",
    input = "float",
    output = "float",
    exact = false,
    left_out = model.left_out,
    firmware = later(function()
        return firmware.of(function(target) return target.isa end)
    end),
}

function family.describe(...) return describe.lines(...) end
function family.packed_text(...) return describe.packed_text(...) end

function family.calibrations(p)
    local found = {}
    for _, section in ipairs(p.sections) do
        found[section.name] = section
    end
    return p.projection.word.offset and { sections.calibration(p, found) } or {}
end

function family.takes(options) return not options.baseline and options.arithmetic ~= "integer" end

function family.build(m, isas, options, wanted)
    local projection = dtype.get(options.projection, "projection")
    if options.firmware and projection.word.integers then
        misuse(
            "--projection: "
                .. projection.name
                .. ": rounds inputs as well as weights, which the self-test's bounds do not know: "
                .. "give --arithmetic integer"
        )
    end
    local part = options.firmware and { target = options.firmware } or nil
    return plan.build(m, isas, wanted, options.tables, options.projection, part)
end

function family.isa_types(options) return { dtype.get(options.tables), dtype.get(options.projection, "projection") } end

function family.sizes(p)
    return {
        { "d", "input width" },
        { "d_out", "output width" },
        { "tables", "hash tables" },
        { "tau", "bits of a code" },
        { "neighbours", "rows that a token takes of a table", value = p.shape.neighbours == 1 and "1" or nil },
        { "scratch_bytes", "that a call works in" },
        { "scratch_bytes_one", "that a call of one token works in" },
        { "x_type", "of x", text = "f32" },
        { "y_type", "of y", text = "f32" },
        { "tables_type", "of the tables' elements", text = p.tables.name },
        { "projection_type", "of the projection's weights", text = p.projection.name },
    }
end

function family.summary(_, make)
    local p, variants = make(), {}
    for i, v in ipairs(p.variants) do
        variants[i] = {
            isa = v.isa.name,
            schedule = v.schedule_text,
            tile = v.tile,
            chunk = v.chunk,
            scratch_bytes = v.scratch_bytes,
        }
    end
    return describe.summary(p, { variants = variants })
end

return family
