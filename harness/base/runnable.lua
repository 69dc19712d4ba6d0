-- Which instruction sets this CPU and its operating system can run.
local cpu = require "cpu"
local isa = require "gen.isa.list"

-- The instruction sets of `text` (all, if absent) that this CPU can run with weights of the types of
-- gen/plan/dtype.lua in the list, and the names of those it cannot. Raises one line if there are none.
return function(text, types)
    local can, list, skipped, facts = {}, {}, {}, cpu.describe()
    for _, name in ipairs(facts.isa) do
        can[name] = true
    end
    for _, set in ipairs(isa.select(text or table.concat(isa.names, ","))) do
        local can_run = can[set.name]
        for _, feature in ipairs(isa.with_types(set, types).features or {}) do
            can_run = can_run and facts[feature]
        end
        if can_run then
            list[#list + 1] = set
        else
            skipped[#skipped + 1] = set.name
        end
    end
    if #list == 0 then error("--isa: this CPU runs none of " .. (text or table.concat(isa.names, ",")), 0) end
    return list, skipped
end
