-- Products of blocks on a matrix engine are those on vectors: bytes to the bit, as sums of integers are, and bf16 where
-- sums are exact. The tiles are arrays in C.
local compilers = require "harness.base.compilers"
local process = require "process"
local program = require "tests.support.program"

local test = {}
local folder = program.folder()

-- The header in place of AVX-512 and tiles, which any CPU with AVX2 runs; see tests/support/stand_ins.lua.
local flags = { "-mavx2", "-mfma", "-mf16c", "-include", "tests/isa/stand_ins/amx.h", "-D__asm__(...)=", "-Wno-psabi" }

local function compare(type, vectors, tiles, defined)
    local path = program.model(
        folder,
        "tiles_" .. type,
        [[return { name = "tiles", d = 32, heads = 1, layers = 1, vocab = 8,
        attention = { eliminate = "QP", context = 32 }, ffn = { kind = "mlp", f = 64, activation = "relu" } }]]
    )
    local bundle = folder .. "/" .. type
    program.works {
        "emit",
        path,
        "--type",
        type,
        "--activations",
        type,
        "--isa",
        vectors .. "," .. tiles,
        "-o",
        bundle,
    }
    local symbol = "tiles_product_" .. type .. "_by_" .. type .. "__"
    -- Whole blocks call functions of other files: they stay undefined, and nothing here calls them.
    compilers.call(compilers.joined({ "gcc", "-std=gnu11", "-O0", "-I" .. bundle, "-DPRODUCT=" .. symbol .. vectors }, {
        "-DBY_TILES=" .. symbol .. tiles,
    }, defined, flags, {
        "tests/model/tiles.c",
        bundle .. "/tiles__" .. vectors .. ".c",
        bundle .. "/tiles__" .. tiles .. ".c",
        "-Wl,--unresolved-symbols=ignore-all",
        "-o",
        bundle .. "/compare",
    }))
    local result = assert(process.run({ bundle .. "/compare" }, { timeout = 120 }))
    if result.status ~= 0 then error(result.output, 0) end
end

function test.products_of_bytes_are_the_same_to_the_bit()
    compare("i8", "avx512", "amx_int8", { "-DSCALED", "-DINPUTS_OF_A_WORD=4" })
end

function test.products_in_bf16_are_the_same_where_sums_are_exact()
    compare("bf16", "avx512_bf16", "amx_bf16", { "-DINPUTS_OF_A_WORD=2" })
end

return test
