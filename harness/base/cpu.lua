-- This processor: what it says of itself (harness/base/cpu.c), and the instruction sets that it runs; of both, where
-- LOOKUPC_CPU names a set, what a CPU would have that has no better. All commands and tests go by it.
local isa = require "gen.isa.list"
local misuse = require "gen.schema.misuse"
local one_of = require "gen.schema.one_of"
local process = require "process"

local cpu = {}

local variable = "LOOKUPC_CPU"

local function with_sets(facts)
    facts.isa = {}
    for _, name in ipairs(isa.names) do
        if isa.runs(isa.get(name), facts) then facts.isa[#facts.isa + 1] = name end
    end
    return facts
end

local other -- the facts of a device that stands for this CPU, nil: none

-- From now on `facts`, those of a device that kernels run on, are what all commands go by.
function cpu.stand_for(facts) other = facts end

-- The facts of cpu.c; isa: the names of the instruction sets that --isa takes and that run here, slowest first. Nothing
-- is masked, but where the mask has no AMX, the system is not asked for it: it counts as missing.
function cpu.real()
    local facts = {}
    for name, value in pairs(other or require("cpu").describe()) do
        facts[name] = value
    end
    return with_sets(facts)
end

-- The same behind the mask, whose name `model` has then, and `mask` is. Raises one line for a name that is none, and
-- for a set that this CPU lacks: a mask only takes away.
function cpu.describe()
    local facts, name = cpu.real(), process.variable(variable)
    if not name or name == "" then return facts end
    one_of.check(variable, name, isa.names)
    if not one_of.contains(facts.isa, name) then
        local has = table.concat(facts.isa, ", ")
        misuse(string.format('%s: "%s": this CPU has no such instructions: it has %s', variable, name, has))
    end
    isa.mask(facts, isa.get(name))
    facts.mask, facts.model = name, string.format("%s (%s=%s)", facts.model, variable, name)
    return with_sets(facts)
end

return cpu
