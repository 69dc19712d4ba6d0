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

-- The instruction set `set` for this CPU, which has AVX2, as one that it may bind.
function stand_ins.bound_everywhere(set)
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

-- The instruction set of that name, which a CPU with AVX2 may bind then, even one that runs the set, and its header;
-- nil: this CPU has no AVX2.
function stand_ins.get(name)
    if not isa.runs(isa.get "avx2", cpu.describe()) then
        return host.print("skipped: " .. name .. ": this CPU has no AVX2")
    end
    return stand_ins.bound_everywhere(isa.get(name)), headers[name]
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
