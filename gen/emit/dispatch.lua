-- Which kernels of a bundle are for which CPUs: what bind asks a CPU for, and where code of other architectures is left
-- out.
local isa_list = require "gen.isa.list"
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

-- What bind needs to know of `isas`:
--   list       { number, name, cpu, x86, has_own, condition, opens, closes }: has_own, what a function of its own asks;
--              opens, closes: whether it is the first or the last one in a row of its architecture
--   names_text, name_bytes   the names as C strings, and the bytes of the longest one
--   x86        whether to ask CPUID: { leaf7_ecx, leaf7_1_eax, bare }, whether for leaf 7's ECX and its subleaf 1, and
--              of CPUs without leaf 7 and XGETBV; false
function dispatch.plan(isas)
    local plan, quoted = { list = {}, name_bytes = 0, x86 = false }, {}
    for i, set in ipairs(isas) do
        local x86 = set.architecture == "x86"
        plan.list[i] = {
            number = i - 1,
            name = set.name,
            cpu = set.cpu or false,
            x86 = x86,
            has_own = set.architecture == "aarch64" and set.cpu ~= nil,
            condition = dispatch.condition(set) or false,
        }
        quoted[i] = '"' .. set.name .. '"'
        plan.name_bytes = math.max(plan.name_bytes, #set.name + 1)
        if x86 then
            plan.x86 = plan.x86 or { leaf7_ecx = false, leaf7_1_eax = false, bare = false }
            plan.x86.leaf7_1_eax = plan.x86.leaf7_1_eax or set.cpu.leaf7_1_eax ~= nil
            plan.x86.leaf7_ecx = plan.x86.leaf7_ecx or set.cpu.leaf7_ecx ~= nil
            plan.x86.bare = plan.x86.bare or set.cpu.xcr0 == 0
        end
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
