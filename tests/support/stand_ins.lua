-- Instruction sets of x86 that a CPU with AVX2 runs by functions in C, where it has no better.
local cpu = require "harness.base.cpu"
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

return stand_ins
