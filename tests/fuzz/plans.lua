-- Random plans of every family, each for one instruction set and with a random schedule: what tests compile.
local dtype = require "gen.plan.dtype"
local baseline_plan = require "gen.families.baseline.plan"
local fuzz = require "tests.fuzz.fuzz"
local integer_plan = require "gen.families.integer.plan"
local isa = require "gen.isa.list"
local lookup_plan = require "gen.families.lookup.plan"
local model = require "gen.families.model_file"
local transformers = require "tests.fuzz.transformers"
local whole_models = require "tests.fuzz.whole_models"

local plans = {}

-- The model with sizes that integers and a dense FFN take.
local function plain(given)
    local copy = {}
    for key, value in pairs(given) do
        copy[key] = value
    end
    copy.d, copy.d_out = (given.d + 7) // 8 * 8, ((given.d_out or given.d) + 31) // 32 * 32
    copy.neighbours = nil
    return model.validate(copy, "", copy.name)
end

-- The plans of number `index` for the instruction set `set`: { { name, plan } }, as many for every number.
function plans.of(index, set)
    local given, tables, projection = fuzz.model(index)
    local m = model.validate(given, "", given.name)
    local random = fuzz.generator(index * 104729 + 5)
    for _ = 1, 8 do
        random(0, 1)
    end
    local typed = isa.with_types(set, { dtype.get(tables), dtype.get(projection, "projection") })
    local shape = lookup_plan.build(m, { set }, nil, tables, projection).shape
    local s = fuzz.schedule(random, shape, typed)
    while set.prefetch_l2 and s["tile.vectors"] * set.lanes == 1 do -- is for portable C, which prefetches nothing
        s = fuzz.schedule(random, shape, typed)
    end
    local list = {
        { name = "lookup", plan = lookup_plan.build(m, { set }, { [set.name] = s }, tables, projection) },
        { name = "transformer", plan = transformers.plan(index, { set }) },
        { name = "whole model", plan = (whole_models.plan(index, { set })) },
    }
    local function add(name, build, ...) list[#list + 1] = { name = name, plan = build(plain(given), { set }, ...) } end
    add("dense FFN", baseline_plan.build, false)
    if set.lanes == 1 then
        local names = integer_plan.projection_names
        add("integers", integer_plan.build, "i8", names[index % #names + 1])
        add("dense FFN in integers", baseline_plan.build, true, names[index % #names + 1])
    end
    return list
end

return plans
