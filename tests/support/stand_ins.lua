-- Instruction sets of x86 that a CPU with AVX2 runs by functions in C, where it has no better.
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

-- The header of functions in C for the instruction set `set`, nil: there is none, or this CPU runs the set, or not
-- even those.
function stand_ins.header(set)
    local facts = cpu.describe()
    if isa.runs(set, facts) or not isa.runs(isa.get "avx2", facts) then return nil end
    return headers[set.name]
end

-- Compiler flags that take the header's place for those of the set.
function stand_ins.flags(header) return { "-mavx2", "-mfma", "-mf16c", "-include", header } end

-- Makes this CPU, which has AVX2, one that may bind kernels of the instruction set `set`.
function stand_ins.bind_everywhere(set)
    set.cpu = isa.get("avx2").cpu
    for _, needs in pairs(set.type_needs or {}) do
        needs.leaf1_ecx, needs.leaf7_ecx = nil, nil
    end
end

-- The instruction set of that name, which this CPU may bind then, and the header; nil: there is none.
function stand_ins.get(name)
    local set = isa.get(name)
    local header = stand_ins.header(set)
    if not header then return host.print("skipped: " .. name .. ": runs here, or AVX2 does not") end
    stand_ins.bind_everywhere(set)
    return set, header
end

-- The library of `plans` in `directory`, without optimisation, with the header's functions for instructions.
function stand_ins.library(plans, directory, header)
    local contents, units = compile.sources(plans)
    for _, unit in ipairs(units) do
        if unit.isa then
            unit.flags = compilers.joined(stand_ins.flags(header), { "-D__asm__(...)=", "-Wno-psabi" })
        end
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
