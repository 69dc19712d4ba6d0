-- AVX2 with FMA: 8 lanes, 16 registers.

local expression = require "gen.isa.expression"
local gather = require "gen.isa.parts.avx2_gather"

local avx2, tools = require "gen.isa.parts.x86"(256)
local at, cast, call = expression.sum, expression.cast, tools.call
local load_bytes, store_bytes = tools.load_bytes, tools.store_bytes

avx2.name, avx2.lanes, avx2.registers = "avx2", 8, 16
avx2.l2_bytes = 512 << 10
avx2.flags = { "-mavx2", "-mfma" }
avx2.guard = "defined(__AVX2__) && defined(__FMA__)"
-- FMA, OSXSAVE, AVX; AVX2; xmm and ymm state
avx2.cpu = { leaf1_ecx = 1 << 12 | 1 << 27 | 1 << 28, leaf7_ebx = 1 << 5, xcr0 = 0x6 }
avx2.vector, avx2.index, avx2.mask = "__m256", "__m256i", "__m256"

-- Lanes 0 … n-1 set, as an __m256i.
local function first(n)
    local lanes = {}
    for lane = 0, 7 do
        lanes[#lanes + 1] = lane < n and "-1" or "0"
    end
    return call("setr_epi32", table.concat(lanes, ", "))
end

function avx2.load_partial(base, offset, n) return call("maskload_ps", at(base, offset), first(n)) end
function avx2.load_words_partial(base, offset, n)
    return call("maskload_epi32", cast("const int *", cast("const void *", at(base, offset))), first(n))
end

-- Elements 0 … n-1 of a table, zeros after them. No instruction loads a few bytes under a mask.
local function few_elements(base, n, set, cast_type)
    local list = {}
    for lane = 0, 7 do
        local element = lane < n and expression.index(base, lane) or "0"
        list[lane + 1] = lane < n and cast_type and cast(cast_type, element) or element
    end
    return expression.call(set, table.unpack(list))
end

local function upper_half(v) return call("castsi256_ps", call("slli_epi32", v, "16")) end
function avx2.load_bf16(base) return upper_half(call("cvtepu16_epi32", load_bytes(128, base))) end
function avx2.load_f16(base) return call("cvtph_ps", load_bytes(128, base)) end
function avx2.load_i8(base)
    local eight = expression.call("_mm_loadl_epi64", cast("const __m128i *", cast("const void *", base)))
    return call("cvtepi32_ps", call("cvtepi8_epi32", eight))
end
-- fp8 with the sign extended to 16 bits, moved to where half precision has fraction and exponent; of the copies of the
-- sign only the first one is left. The exponent's bias is larger by 8: 1/256 of each number, exactly.
local function from_e4m3(bytes)
    local halves = expression.call("_mm_slli_epi16", bytes, 7)
    return call(
        "cvtph_ps",
        expression.call("_mm_and_si128", halves, expression.call("_mm_set1_epi16", cast("short", "0xbf80")))
    )
end
function avx2.load_e4m3(base)
    local eight = expression.call("_mm_loadl_epi64", cast("const __m128i *", cast("const void *", base)))
    return from_e4m3(expression.call("_mm_cvtepi8_epi16", eight))
end
function avx2.load_partial_e4m3(base, n) return from_e4m3(few_elements(base, n, "_mm_setr_epi16", "int8_t")) end
function avx2.store_f16(base, offset, v) return store_bytes(128, at(base, offset), call("cvtps_ph", v, "0")) end
function avx2.store_i8(base, offset, v)
    local whole = call("cvtps_epi32", v)
    local halves =
        expression.call("_mm_packs_epi32", call("castsi256_si128", whole), call("extracti128_si256", whole, "1"))
    return expression.call(
        "_mm_storel_epi64",
        cast("__m128i *", cast("void *", at(base, offset))),
        expression.call("_mm_packs_epi16", halves, "_mm_setzero_si128()")
    )
end
function avx2.load_partial_bf16(base, n) return upper_half(few_elements(base, n, "_mm256_setr_epi32")) end
function avx2.load_partial_f16(base, n) return call("cvtph_ps", few_elements(base, n, "_mm_setr_epi16", "short")) end
function avx2.load_partial_i8(base, n) return call("cvtepi32_ps", few_elements(base, n, "_mm256_setr_epi32")) end
local f16c = { flags = { "-mf16c" }, guard = "defined(__F16C__)", leaf1_ecx = 1 << 29, feature = "f16c" }
avx2.always = { leaf1_ecx = 1 << 29 }
avx2.type_needs = { f16 = f16c, e4m3 = f16c }

function avx2.dot_i16(sum, a, b) return call("add_epi32", sum, call("madd_epi16", a, b)) end
function avx2.store_i16(base, offset, a, b) -- packs_epi32 packs each half on its own
    return avx2.store_words(
        base,
        offset,
        call("permute4x64_epi64", call("packs_epi32", call("cvtps_epi32", a), call("cvtps_epi32", b)), "0xd8")
    )
end
function avx2.store_quads(base, offset, a, b, c, d)
    local order = call("setr_epi32", "0, 4, 1, 5, 2, 6, 3, 7")
    return avx2.store_words(base, offset, call("permutevar8x32_epi32", tools.bytes_of(a, b, c, d), order))
end

tools.add_bf16( -- packus_epi32 packs each half on its own
    avx2,
    function(a, b) return call("permute4x64_epi64", call("packus_epi32", a, b), "0xd8") end,
    "_mm256_or_si256(nearest, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)))"
)

tools.add_pairs_of_bytes(avx2)
tools.add_nibbles(avx2)

function avx2.store_partial(base, offset, n, v) return call("maskstore_ps", at(base, offset), first(n), v) end
function avx2.abs(v) return call("andnot_ps", call("set1_ps", "-0.0f"), v) end
function avx2.less(a, b) return call("cmp_ps", a, b, "_CMP_LT_OQ") end
function avx2.select(mask, a, b) return call("blendv_ps", b, a, mask) end
function avx2.any(mask) return call("movemask_ps", mask) .. " != 0" end
function avx2.index_select(mask, a, b) return call("blendv_epi8", b, a, call("castps_si256", mask)) end
function avx2.index_or_if_positive(index, z, bit)
    local positive = call("castps_si256", call("cmp_ps", z, call("setzero_ps"), "_CMP_GT_OQ"))
    return call("or_si256", index, call("and_si256", positive, call("set1_epi32", bit)))
end
function avx2.index_store(base, offset, index)
    return store_bytes(
        128,
        at(base, offset),
        expression.call("_mm_packus_epi32", call("castsi256_si128", index), call("extracti128_si256", index, "1"))
    )
end
function avx2.index_load(base, offset) return call("cvtepu16_epi32", load_bytes(128, at(base, offset))) end
function avx2.index_has(index, bit)
    local only = avx2.index_broadcast(tostring(bit))
    return call("castsi256_ps", call("cmpeq_epi32", call("and_si256", index, only), only))
end

-- Halves, then pairs, then the last two.
function avx2.reduce(v, word)
    return {
        {
            type = "__m128",
            name = "four",
            value = "_mm_"
                .. word
                .. "_ps("
                .. call("castps256_ps128", v)
                .. ", "
                .. call("extractf128_ps", v, "1")
                .. ")",
        },
        { type = "__m128", name = "two", value = "_mm_" .. word .. "_ps(four, _mm_movehl_ps(four, four))" },
    },
        "_mm_cvtss_f32(_mm_" .. word .. "_ss(two, _mm_shuffle_ps(two, two, 1)))"
end

-- 8x8: quads, then the two halves.
function avx2.transpose(r)
    local steps, out = {}, {}
    local let = tools.transpose_quads(r, steps)
    for c = 0, 3 do
        let("column" .. c, call("permute2f128_ps", "quad" .. c, "quad" .. c + 4, "0x20"))
        let("column" .. c + 4, call("permute2f128_ps", "quad" .. c, "quad" .. c + 4, "0x31"))
    end
    for c = 0, 7 do
        out[#out + 1] = "column" .. c
    end
    return steps, out
end

function avx2.lane_sums(r) return tools.lane_sums(r, "permute2f128_ps", "0x20", "0x31") end

local gather_helpers
avx2.integer_sums, gather_helpers = gather(avx2)
avx2.integer_sums.nibbles = tools.gather_nibbles(avx2.integer_sums)
avx2.integer_sums.bytes.nibbles = tools.gather_nibbles(avx2.integer_sums.bytes)
table.move(gather_helpers, 1, #gather_helpers, #avx2.helpers + 1, avx2.helpers)

avx2.narrower = "sse4"

return avx2
