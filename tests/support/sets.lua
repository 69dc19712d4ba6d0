-- Instruction sets from gen/isa/list.lua: those of a bundle by default, and those that a test uses on this CPU.
local cpu = require "harness.base.cpu"
local effort = require "tests.effort"
local isa = require "gen.isa.list"

local sets = { list = isa.bundled, bundled = table.concat(isa.bundled, ",") }

local turn = effort.seed // 64 -- independent of what says which cases have their turn

-- The names of those that run here, of those that are for some types only what serves `type`, if it is given.
function sets.here(type)
    local usable = {}
    for _, name in ipairs(cpu.describe().isa) do
        local serves = isa.get(name).serves
        if not serves or type and table.concat(serves, " "):find(type, 1, true) then usable[#usable + 1] = name end
    end
    return usable
end

-- What a test whose subject is not the instruction set gives to --isa: all of sets.here(type); with effort quick the
-- next of them in turn.
function sets.in_turn(type)
    local usable = sets.here(type)
    if effort.full "instruction_sets" then return table.concat(usable, ",") end
    turn = turn + 1
    return usable[turn % #usable + 1]
end

-- The instruction sets that a test goes through which only emits for them: all; with effort quick a fifth, and
-- others in the next call.
function sets.emitted()
    local names, first = {}, turn
    turn = turn + 1
    for i, name in ipairs(isa.names) do
        if effort.full "instruction_sets" or (i + first) % 5 == 0 then names[#names + 1] = name end
    end
    return names
end

return sets
