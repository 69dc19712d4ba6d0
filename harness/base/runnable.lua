-- Which instruction sets this CPU and its operating system can run, and the plans for them: with the defaults of this
-- CPU, if no others are asked for.
local cpu = require "harness.base.cpu"
local families = require "gen.families.list"
local isa = require "gen.isa.list"
local machine = require "harness.base.machine"
local nominal = require("gen.machines.list").nominal
local request = require "gen.request.request"

local runnable = {}

-- Whether this CPU, of which cpu.describe() said `facts`, runs the instruction set `set` with weights of the types of
-- gen/plan/dtype.lua in the list.
local function runs(set, types, facts) return isa.runs(isa.with_types(set, types), facts) end
function runnable.runs(set, types) return runs(set, types, cpu.describe()) end

-- The instruction sets of `text` (of the names `default`, or of isa.here, if absent) that this CPU can run with weights
-- of the types in the list, and the names of those it cannot; of those for other architectures
-- only what `text` names. Raises one line if there are none.
function runnable.sets(text, types, default)
    local list, skipped, facts = {}, {}, cpu.describe()
    for _, set in ipairs(isa.select(text, types, default or isa.here)) do
        if runs(set, types, facts) then
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

-- The machine whose defaults kernels have that a command with `options` runs here; nil: a tuned file says it all.
function runnable.machine(options) return options["for"] or not options.tuned and machine.name() or nil end

-- The plan of the model file `path` for the instruction sets `sets`, to be run on this CPU.
function runnable.plan(path, sets, options)
    local _, family = request.model(path, options)
    local name = runnable.machine(options)
    if families.takes(family, "for", options) and name and name ~= nominal then
        options = setmetatable({ ["for"] = name }, { __index = options })
    end
    return request.plan(path, sets, options, machine.tuned_note)
end

-- One plan for each instruction set that `choose`, one of the functions above, gives for --isa, and the names of those
-- that this CPU cannot run.
function runnable.plans(path, family, options, choose)
    local sets, skipped = choose(options.isa, family.isa_types(options, (request.model(path, options))))
    local plans = {}
    for i, set in ipairs(sets) do
        plans[i] = runnable.plan(path, { set }, options)
    end
    return plans, skipped
end

return runnable
