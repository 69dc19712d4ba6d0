-- AVX-512 (F, BW, DQ, VL): 16 lanes, 32 registers, mask registers.

local avx512 = require "gen.isa.x86" (512)
local at, call = avx512.at, avx512.call

avx512.name, avx512.lanes, avx512.registers = "avx512", 16, 32
avx512.l2_bytes = 1 << 20
avx512.flags = { "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma" }
avx512.guard = "defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)"
avx512.cpu = { -- FMA, OSXSAVE, AVX; AVX-512 F, DQ, BW, VL; xmm, ymm, zmm and mask state
    leaf1_ecx = 1 << 12 | 1 << 27 | 1 << 28, leaf7_ebx = 1 << 16 | 1 << 17 | 1 << 30 | 1 << 31, xcr0 = 0xe6,
}
avx512.vector, avx512.index = "__m512", "__m512i"

local function first(n) return string.format("0x%04x", (1 << n) - 1) end

function avx512.load_partial(base, offset, n) return call("maskz_loadu_ps", first(n), at(base, offset)) end
function avx512.load_words_partial(base, offset, n) return call("maskz_loadu_epi32", first(n), at(base, offset)) end

local function upper_half(v) return call("castsi512_ps", call("slli_epi32", call("cvtepu16_epi32", v), "16")) end
local function integers(v) return call("cvtepi32_ps", call("cvtepi8_epi32", v)) end
local function few_halves(base, n) return "_mm256_maskz_loadu_epi16(" .. first(n) .. ", " .. base .. ")" end
function avx512.load_bf16(base) return upper_half(avx512.bytes(256, base)) end
function avx512.load_f16(base) return call("cvtph_ps", avx512.bytes(256, base)) end
function avx512.load_i8(base) return integers(avx512.bytes(128, base)) end
function avx512.load_partial_bf16(base, n) return upper_half(few_halves(base, n)) end
function avx512.load_partial_f16(base, n) return call("cvtph_ps", few_halves(base, n)) end
function avx512.load_partial_i8(base, n) return integers("_mm_maskz_loadu_epi8(" .. first(n) .. ", " .. base .. ")") end

function avx512.store_partial(base, offset, n, v) return call("mask_storeu_ps", at(base, offset), first(n), v) end
function avx512.abs(v) return call("abs_ps", v) end
function avx512.power_of_two(n)
    return call("castsi512_ps", call("slli_epi32", call("add_epi32", call("cvtps_epi32", n), call("set1_epi32", "127")), "23"))
end
function avx512.index_zero() return call("setzero_si512") end
function avx512.index_or_if_positive(index, z, bit)
    return call("mask_or_epi32", index, call("cmp_ps_mask", z, call("setzero_ps"), "_CMP_GT_OQ"), index, call("set1_epi32", bit))
end
function avx512.index_store(base, offset, index)
    return "_mm256_storeu_si256((__m256i *) (void *) (" .. at(base, offset) .. "), " .. call("cvtepi32_epi16", index) .. ")"
end

-- 16x16: quads, then a 4x4 transpose of 128-bit quarters.
function avx512.transpose(r)
    local steps, out = {}, {}
    local let = avx512.transpose_quads(r, steps)
    for c = 0, 3 do
        for half, mask in ipairs { "0x88", "0xdd" } do
            let("upper" .. c + 4 * (half - 1), call("shuffle_f32x4", "quad" .. c, "quad" .. c + 4, mask))
            let("lower" .. c + 4 * (half - 1), call("shuffle_f32x4", "quad" .. c + 8, "quad" .. c + 12, mask))
        end
    end
    for c = 0, 15 do
        local source = c % 8
        let("column" .. c, call("shuffle_f32x4", "upper" .. source, "lower" .. source, c < 8 and "0x88" or "0xdd"))
    end
    for c = 0, 15 do out[#out + 1] = "column" .. c end
    return steps, out
end

return avx512
