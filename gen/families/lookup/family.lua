-- The family of LookupFFNs; gen/families/list.lua says what its fields mean. The arithmetics, floating point and
-- integers, have plans and kernels of their own.
local dtype = require "gen.plan.dtype"
local lazy = require "gen.host.lazy"
local misuse = require "gen.schema.misuse"
local model = require "gen.families.lookup.model"
local one_of = require "gen.schema.one_of"

local dense = lazy "gen.families.lookup.dense"
local describe = lazy "gen.families.lookup.describe"
local integer_plan = lazy "gen.families.lookup.integer.plan"
local integer_print = lazy "gen.families.lookup.integer.print"
local plan = lazy "gen.families.lookup.plan"
local print_float = lazy "gen.families.lookup.print"
local sections = lazy "gen.families.lookup.sections"

local family = {
    name = "lookup",
    noun = "LookupFFN",
    model = model,
    options = {
        "arithmetic",
        "tables",
        "projection",
        "multiply-out",
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
    space = lazy "gen.families.lookup.schedule",
    training = lazy "gen.families.lookup.print_training",
    wrapper = "ffn",
    left_out = model.left_out,
    firmware = lazy "gen.families.lookup.firmware",
    benchmark = lazy "gen.families.lookup.benchmark",
    print = {},
}

local arithmetics = { "float", "integer" }
family.arithmetics = arithmetics

-- Kernels of integers have one schedule, no OpenMP build and nothing beside which they are timed.
local not_beside_integers =
    { schedule = true, ["for"] = true, tuned = true, threads = true, rivals = true, ["multiply-out"] = true }

local function is_integer(options)
    one_of.check("--arithmetic", options.arithmetic or "float", arithmetics)
    return options.arithmetic == "integer"
end

function family.excluded(options)
    if is_integer(options) then return not_beside_integers, "--arithmetic integer" end
    return {}
end

local function kernels(p) return p.exact and integer_print or print_float end
function family.print.api(p) return kernels(p).api(p) end
function family.print.files(p, v) return kernels(p).files(p, v) end

function family.describe(...) return describe.lines(...) end
function family.packed_text(...) return describe.packed_text(...) end
function family.summary(...) return describe.summary(...) end

function family.calibrations(p)
    local found = {}
    for _, section in ipairs(p.sections) do
        found[section.name] = section
    end
    return p.projection.word.offset and { sections.calibration(p, found) } or {}
end

function family.build(m, isas, options, wanted)
    if is_integer(options) then return integer_plan.build(m, isas, options) end
    local projection = dtype.get(options.projection, "projection")
    if options.firmware and projection.word.integers then
        misuse(
            "--projection: "
                .. projection.name
                .. ": rounds inputs as well as weights, which the self-test's bounds do not know: "
                .. "give --arithmetic integer"
        )
    end
    if options.firmware and options["multiply-out"] then
        misuse "--multiply-out: is for calls of many tokens, and those of firmware are of one"
    end
    local part = options.firmware and { target = options.firmware }
        or options["multiply-out"] and { multiply_out = true }
        or nil
    return plan.build(m, isas, wanted, options.tables, options.projection, part)
end

function family.isa_types(options)
    if is_integer(options) then return {} end
    local tables, projection = dtype.get(options.tables), dtype.get(options.projection, "projection")
    return { tables, projection, options["multiply-out"] and dense.needs(projection) or nil }
end

function family.sizes(p)
    local list = {}
    local function add(row) list[#list + 1] = row end
    add { "d", "input width" }
    add { "d_out", "output width" }
    add { "tables", "hash tables" }
    add { "tau", "bits of a code" }
    local several = p.shape.neighbours > 1
    if several or not p.exact then
        add { "neighbours", "rows that a token takes of a table", value = not several and "1" or nil }
    end
    add { "scratch_bytes", "that a call works in" }
    local one = p.exact and p.names.macro "SCRATCH_BYTES" or nil
    add { "scratch_bytes_one", "that a call of one token works in", value = one }
    add { "x_type", "of x", text = p.exact and "i16" or "f32" }
    add { "y_type", "of y", text = p.exact and "i32" or "f32" }
    if p.exact then
        add { "x_scale", "x stands for x times this", kind = "number" }
        add { "y_scale", "y stands for y times this", kind = "number" }
    else
        add { "tables_type", "of the tables' elements", text = p.tables.name }
    end
    add { "projection_type", "of the projection's weights", text = p.projection.name }
    return list
end

return family
