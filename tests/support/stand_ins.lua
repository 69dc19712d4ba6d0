-- Instruction sets of x86 that every CPU with AVX2 runs by functions in C, whether or not it has them.
local compile = require "harness.base.compile"
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local host = require "host"
local isa = require "gen.isa.list"

local stand_ins = {}

local headers = {
    avx_vnni = "tests/isa/stand_ins/avx_vnni.h",
    avx512 = "tests/isa/stand_ins/avx512.h",
    avx512_bf16 = "tests/isa/stand_ins/avx512.h",
    amx_int8 = "tests/isa/stand_ins/amx.h",
    amx_bf16 = "tests/isa/stand_ins/amx.h",
}

-- Compiler flags that take the header's place for those of the set.
function stand_ins.flags(header) return { "-mavx2", "-mfma", "-mf16c", "-include", header } end

-- Those of kernels: also no inline assembly, and no word on vectors of 64 bytes as arguments.
function stand_ins.of_kernels(header)
    return compilers.joined(stand_ins.flags(header), { "-D__asm__(...)=", "-Wno-psabi" })
end

-- The command that finds what the kernels in the file `source` call and the header lacks.
function stand_ins.check(source, header)
    local flags = compile.flags({ flags = stand_ins.of_kernels(header) }, "")
    return compilers.joined({ "gcc" }, flags, { "-fsyntax-only", source })
end

-- The instruction set `set` as one that CPUs with AVX2 may bind.
local function bound_everywhere(set)
    local own = { cpu = isa.get("avx2").cpu, type_needs = {} }
    for key, value in pairs(set) do
        own[key] = own[key] or value
    end
    for type, needs in pairs(set.type_needs or {}) do
        local rest = {}
        for key, value in pairs(needs) do
            if key ~= "leaf1_ecx" and key ~= "leaf7_ecx" then rest[key] = value end
        end
        own.type_needs[type] = rest
    end
    return own
end

-- The names of those instruction sets.
stand_ins.names = {}
for _, name in ipairs(isa.names) do
    if headers[name] then table.insert(stand_ins.names, name) end
end

-- The instruction set of that name as one that this CPU may bind, and the header of functions in C for it; nil: there
-- is none, or this CPU, whatever it is asked to pass for, has no AVX2, which is said.
function stand_ins.get(name)
    if not headers[name] then return nil end
    if not isa.runs(isa.get "avx2", cpu.real()) then
        host.print("skipped: stand-ins for " .. name .. ": this CPU has no AVX2")
        return nil
    end
    return bound_everywhere(isa.get(name)), headers[name]
end

-- The library of `plans` in `directory`, without optimisation, with the header's functions for instructions.
function stand_ins.library(plans, directory, header)
    local contents, units = compile.sources(plans)
    for _, unit in ipairs(units) do
        if unit.isa then unit.flags = stand_ins.of_kernels(header) end
    end
    assert(host.write_directory(directory, contents, true))
    local library = directory .. "/all.so"
    local commands, link = compile.commands(units, directory, library, "gcc", "-O0")
    for _, failure in ipairs(compilers.failures(commands)) do
        if failure then error(failure, 0) end
    end
    compilers.call(link)
    return library
end

return stand_ins
