-- Which kernels of a bundle are for which CPUs: what bind asks a CPU for, and where code of other architectures is left
-- out.
local isa_list = require "gen.isa.list"
local literal = require "gen.print.literal"
local misuse = require "gen.schema.misuse"

local dispatch = {}

-- Whether one of `isas` is for the architecture of that name.
local function has(isas, architecture)
    for _, set in ipairs(isas) do
        if set.architecture == architecture then return true end
    end
    return false
end

-- Whether each file of a bundle of `isas` leaves its kernels out where they are for another architecture, so that
-- portable C is left there. Other bundles stop there.
function dispatch.guarded(isas) return #isas > 1 and not isas[1].architecture and has(isas, "aarch64") end

-- Raises one line for instruction sets of several architectures without portable C: no case is left on others.
function dispatch.check(isas)
    if has(isas, "x86") and has(isas, "aarch64") and isas[1].architecture then
        misuse("--isa: " .. isas[1].name .. ": a bundle for x86 and AArch64 needs scalar")
    end
end

-- The preprocessor condition under which there are kernels of `set`, in a bundle that is guarded; nil: always.
function dispatch.condition(set)
    local architecture = isa_list.architectures[set.architecture]
    return set.condition or architecture and architecture.condition
end

-- The names of the instruction sets of `variants` that need the system's permission: a bundle that has some has the
-- function that asks for it.
function dispatch.permitted(variants)
    local list = {}
    for _, v in ipairs(variants) do
        if isa_list.needs_permission(v.isa) then list[#list + 1] = v.isa.name end
    end
    return list
end

-- What to ask x86 CPUs for the instruction sets `isas`: { a list of isa_list.registers, and by its name whether one is
-- asked; parameters: of the function that asks; leaf7: what it asks of that leaf; bare: whether of CPUs without leaf 7
-- and XGETBV, too }; false: nothing.
local function x86_of(isas)
    local x86, parameters, leaf7 = { bare = false }, {}, {}
    for _, register in ipairs(isa_list.registers) do
        x86[register] = false
        for _, set in ipairs(isas) do
            if set.architecture == "x86" and set.cpu[register] then x86[register] = true end
        end
        if x86[register] then
            x86[#x86 + 1] = register
            parameters[#parameters + 1] = "unsigned " .. (register == "xcr0" and "state" or register)
            leaf7[#leaf7 + 1] = register:match "^leaf7_(e.x)"
        end
    end
    for _, set in ipairs(isas) do
        x86.bare = x86.bare or set.architecture == "x86" and set.cpu.xcr0 == 0
    end
    x86.parameters = table.concat(parameters, ", ")
    x86.leaf7 = table.concat(leaf7, ", "):upper():gsub(", (%a+)$", " and %1")
    return x86[1] and x86
end

-- What the function asks for `set`: its arguments.
local function arguments_of(x86, set)
    local list = {}
    for i, register in ipairs(x86) do
        list[i] = literal.hex(set.cpu[register] or 0, register == "xcr0" and 2 or 8)
    end
    return table.concat(list, ", ")
end

-- What bind needs to know of `isas`:
--   list       { number, name, cpu, x86, has_own, permission, condition, opens, closes }: x86, what an x86 CPU is asked
--              for it; has_own, what a function of its own asks; permission, whether it needs the system's;
--              opens, closes: whether it is the first or the last one in a row of its architecture
--   permitted  those of the list that need the system's permission
--   names_text, name_bytes   the names as C strings, and the bytes of the longest one
--   x86        what x86_of says
function dispatch.plan(isas)
    local plan, quoted = { list = {}, permitted = {}, name_bytes = 0, x86 = x86_of(isas) }, {}
    for i, set in ipairs(isas) do
        plan.list[i] = {
            number = i - 1,
            name = set.name,
            cpu = set.cpu or false,
            x86 = set.architecture == "x86" and arguments_of(plan.x86, set),
            has_own = set.architecture == "aarch64" and set.cpu ~= nil,
            permission = isa_list.needs_permission(set),
            condition = dispatch.condition(set) or false,
        }
        if plan.list[i].permission then plan.permitted[#plan.permitted + 1] = plan.list[i] end
        quoted[i] = '"' .. set.name .. '"'
        plan.name_bytes = math.max(plan.name_bytes, #set.name + 1)
    end
    for i, row in ipairs(plan.list) do
        local before, behind = plan.list[i - 1], plan.list[i + 1]
        row.opens = row.condition and not (before and before.condition == row.condition)
        row.closes = row.condition and not (behind and behind.condition == row.condition)
    end
    plan.names_text = table.concat(quoted, ", ")
    return plan
end

return dispatch
