-- Which instruction sets this CPU and its operating system can run, and the plans for them.
local cpu = require "harness.base.cpu"
local isa = require "gen.isa.list"
local machine = require "harness.base.machine"
local request = require "gen.bundle.request"

local runnable = {}

-- The instruction sets of `text` (of the names `default`, or of isa.here, if absent) that this CPU can run with weights
-- of the types of gen/plan/dtype.lua in the list, and the names of those it cannot; of those for other architectures
-- only what `text` names. Raises one line if there are none.
function runnable.sets(text, types, default)
    local list, skipped, facts = {}, {}, cpu.describe()
    for _, set in ipairs(isa.select(text, types, default or isa.here)) do
        if isa.runs(isa.with_types(set, types), facts) then
            list[#list + 1] = set
        elseif text or isa.is_for(set, facts) then
            skipped[#skipped + 1] = set.name
        end
    end
    if #list == 0 then error("--isa: this CPU runs none of " .. table.concat(skipped, ","), 0) end
    return list, skipped
end

-- The same where all that --isa takes are meant, if `text` is absent: what no bundle has by itself is proven, too.
function runnable.every(text, types) return runnable.sets(text, types, isa.names) end

-- One plan for each instruction set that `choose`, one of the functions above, gives for --isa, and the names of those
-- that this CPU cannot run.
function runnable.plans(path, family, options, choose)
    local sets, skipped = choose(options.isa, family.isa_types(options, (request.model(path, options))))
    local plans = {}
    for i, set in ipairs(sets) do
        plans[i] = request.plan(path, { set }, options, machine.tuned_note)
    end
    return plans, skipped
end

return runnable
