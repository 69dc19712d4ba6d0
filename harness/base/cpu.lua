-- This processor: what it says of itself (harness/base/cpu.c), and the instruction sets that it runs.
local isa = require "gen.isa.list"

local cpu = {}

-- The facts of cpu.c; isa: the names of the instruction sets that --isa takes and that run here, slowest first.
function cpu.describe()
    local facts = require("cpu").describe()
    facts.isa = {}
    for _, name in ipairs(isa.names) do
        if isa.runs(isa.get(name), facts) then facts.isa[#facts.isa + 1] = name end
    end
    return facts
end

-- Likewise, whatever this CPU is asked to pass for.
cpu.real = cpu.describe

return cpu
