-- Instruction sets from gen/isa/list.lua: those of a bundle by default, and those that a test uses on this CPU.
local cpu = require "harness.base.cpu"
local effort = require "tests.effort"
local isa = require "gen.isa.list"

local sets = { list = isa.bundled, bundled = table.concat(isa.bundled, ",") }

local turn = 0

-- What a test whose subject is not the instruction set gives to --isa: all that run here; with effort quick the next of
-- them in turn.
function sets.in_turn()
    local usable = cpu.describe().isa
    if effort.full then return table.concat(usable, ",") end
    turn = turn + 1
    return usable[turn % #usable + 1]
end

return sets
