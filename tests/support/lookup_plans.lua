-- Plans of LookupFFNs for the instruction sets of a bundle: of models by name, and of random ones.
local effort = require "tests.effort"
local fuzz = require "tests.fuzz.fuzz"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local plan = require "gen.families.lookup.plan"
local sets = require "tests.support.sets"

local lookup_plans = { sets = isa.select(sets.bundled) }

function lookup_plans.of(name) return plan.build(model.load("gen/models/" .. name .. ".lua"), lookup_plans.sets) end

-- Calls `tried(plan, model)` for random models; a failure says which.
function lookup_plans.for_random_models(tried)
    for index = 1, effort.plans do
        local given, tables, projection = fuzz.model(index)
        local m = model.validate(given, "", "fuzz")
        local good, message = pcall(function() tried(plan.build(m, lookup_plans.sets, nil, tables, projection), m) end)
        if not good then
            error(
                string.format(
                    "model %d, projection in %s, tables in %s, %s%s",
                    index,
                    projection,
                    tables,
                    fuzz.text(given),
                    message
                ),
                0
            )
        end
    end
end

return lookup_plans
