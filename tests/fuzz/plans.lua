-- Random plans of every family, each for one instruction set and with a random schedule: what tests compile.
local dtype = require "gen.plan.dtype"
local families = require "gen.families.list"
local fuzz = require "tests.fuzz.fuzz"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local target_list = require "gen.plan.target"
local transformers = require "tests.fuzz.transformers"
local whole_models = require "tests.fuzz.whole_models"

local plans = {}

-- The first target of the firmware instruction set `set`, nil: it is one of hosts.
function plans.target_of(set)
    for _, row in ipairs(isa.list) do
        if row.name == set.name and row.use ~= "firmware" then return nil end
    end
    for _, target in ipairs(target_list.list) do
        if target.isa == set.name then return target end
    end
end

local function built(family, given, options, set, schedule)
    options.firmware = plans.target_of(set)
    local m = model.validate(given, "", given.name)
    return families.get(family).build(m, { set }, options, schedule and { [set.name] = schedule })
end

local function lookup(index, set, name)
    local given, tables, projection = fuzz.model(index, name)
    local options = { tables = tables, projection = projection }
    local shape = built("lookup", given, options, set).shape
    if options.firmware then return built("lookup", given, options, set), given, options end
    local random = fuzz.generator(index * 104729 + 5)
    for _ = 1, 8 do
        random(0, 1)
    end
    local typed = isa.with_types(set, { dtype.get(tables), dtype.get(projection, "projection") })
    local s = fuzz.schedule(random, shape, typed)
    while set.prefetch_l2 and s["tile.vectors"] * set.lanes == 1 do -- is for portable C, which prefetches nothing
        s = fuzz.schedule(random, shape, typed)
    end
    return built("lookup", given, options, set, s), given, options
end

local function integer(index, set, name)
    local given = fuzz.model(index, name)
    given.d, given.d_out = (given.d + 7) // 8 * 8, ((given.d_out or given.d) + 31) // 32 * 32
    fuzz.for_integers(given)
    local options = { arithmetic = "integer", projection = ({ "i8", "i16" })[index % 2 + 1] }
    options.tables = ({ "i8", "i4" })[index // 2 % 2 + 1]
    return built("lookup", given, options, set), given, options
end

local function transformer(index, set, name)
    local p, given = transformers.plan(index, { set }, name)
    return p, given, p.options
end

local function whole(index, set, name)
    local target = plans.target_of(set)
    local p, given = whole_models.plan(index, { target and isa.get "scalar" or set }, name)
    local options = { quantised = whole_models.quantised[p] }
    for key, value in pairs(p.options) do
        options[key] = value
    end
    if not target then return p, given, options end
    return built("whole", given, options, set), given, options
end

-- Families and what draws one of their models: from a number, an instruction set and the model's name (nil: "fuzz") a
-- plan, the table of a model file, and the options. `checked`: tests/fuzz/checks.lua has a reference for it.
plans.families = {
    { name = "lookup", draw = lookup, checked = true, firmware = true },
    { name = "integer", draw = integer, checked = true, firmware = true, one_lane = true },
    { name = "transformer", draw = transformer, checked = true },
    { name = "whole", draw = whole, checked = true, firmware = true },
}

-- Whether a family has kernels for the instruction set `set`.
function plans.has(family, set)
    if family.one_lane and set.lanes > 1 then return false end
    return family.firmware or not plans.target_of(set)
end

-- The plans of number `index` for the instruction set `set`: { { name, plan } }.
function plans.of(index, set)
    local list = {}
    for _, family in ipairs(plans.families) do
        if plans.has(family, set) then list[#list + 1] = { name = family.name, plan = (family.draw(index, set)) } end
    end
    return list
end

return plans
