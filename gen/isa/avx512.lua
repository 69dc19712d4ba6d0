-- AVX-512 (F, BW, DQ, VL): 16 lanes, 32 registers, mask registers.

local byte_scores = require "gen.isa.parts.byte_scores"
local expression = require "gen.isa.expression"
local interleave = require "gen.isa.parts.x86_quads"

local avx512, tools = require "gen.isa.parts.x86"(512)
local at, call, load_bytes, store_bytes = expression.sum, tools.call, tools.load_bytes, tools.store_bytes

avx512.name, avx512.lanes, avx512.registers = "avx512", 16, 32
avx512.l2_bytes = 1 << 20
avx512.flags = { "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma" }
avx512.guard = "defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)"
avx512.cpu = { -- FMA, OSXSAVE, AVX; AVX-512 F, DQ, BW, VL; xmm, ymm, zmm and mask state
    leaf1_ecx = 1 << 12 | 1 << 27 | 1 << 28,
    leaf7_ebx = 1 << 16 | 1 << 17 | 1 << 30 | 1 << 31,
    xcr0 = 0xe6,
}
avx512.vector, avx512.index, avx512.mask = "__m512", "__m512i", "__mmask16"

local function first(n) return string.format("0x%04x", (1 << n) - 1) end

function avx512.load_partial(base, offset, n) return call("maskz_loadu_ps", first(n), at(base, offset)) end
function avx512.load_words_partial(base, offset, n) return call("maskz_loadu_epi32", first(n), at(base, offset)) end

local function upper_half(v) return call("castsi512_ps", call("slli_epi32", call("cvtepu16_epi32", v), "16")) end
local function integers(v) return call("cvtepi32_ps", call("cvtepi8_epi32", v)) end
local function few_halves(base, n) return "_mm256_maskz_loadu_epi16(" .. first(n) .. ", " .. base .. ")" end
local function few_bytes(base, n) return expression.call("_mm_maskz_loadu_epi8", first(n), base) end
function avx512.load_bf16(base) return upper_half(load_bytes(256, base)) end
function avx512.load_f16(base) return call("cvtph_ps", load_bytes(256, base)) end
function avx512.load_i8(base) return integers(load_bytes(128, base)) end
-- As in gen/isa/avx2.lua.
local function from_e4m3(bytes)
    local halves = expression.call("_mm256_slli_epi16", expression.call("_mm256_cvtepi8_epi16", bytes), 7)
    return call(
        "cvtph_ps",
        expression.call(
            "_mm256_and_si256",
            halves,
            expression.call("_mm256_set1_epi16", expression.cast("short", "0xbf80"))
        )
    )
end
function avx512.load_e4m3(base) return from_e4m3(load_bytes(128, base)) end
function avx512.load_partial_e4m3(base, n) return from_e4m3(few_bytes(base, n)) end
function avx512.store_f16(base, offset, v)
    return store_bytes(256, at(base, offset), call("maskz_cvtps_ph", "0xffff", v, "0"))
end
function avx512.store_i8(base, offset, v)
    return store_bytes(128, at(base, offset), call("cvtsepi32_epi8", call("cvtps_epi32", v)))
end
function avx512.load_partial_bf16(base, n) return upper_half(few_halves(base, n)) end
function avx512.load_partial_f16(base, n) return call("cvtph_ps", few_halves(base, n)) end
function avx512.load_partial_i8(base, n) return integers(few_bytes(base, n)) end

-- Four rows of 64 integers times four scores at a time, summed as integers: VNNI.
avx512.type_needs = {
    i8 = {
        flags = { "-mavx512vnni" },
        guard = "defined(__AVX512VNNI__)",
        leaf7_ecx = 1 << 11,
        feature = "avx512vnni",
        integer_sums = {
            rows = 4,
            columns = 64,
            load = function(base, offset) return call("loadu_si512", at(base, offset)) end,
            load_partial = function(base, offset, n)
                return call("maskz_loadu_epi8", string.format("0x%016xu", (1 << n) - 1), at(base, offset))
            end,
            broadcast = function(word) return call("set1_epi32", expression.cast("int", word)) end,
            interleave = interleave(call),
            -- The steps that put the columns of those four vectors in order, and the vectors.
            order = function(v, ending)
                ending = ending or ""
                local function part(a, b, mask) return call("shuffle_f32x4", a, b, mask) end
                local steps = {
                    { name = "lower0" .. ending, value = part(v[1], v[2], "0x44") },
                    { name = "upper0" .. ending, value = part(v[1], v[2], "0xee") },
                    { name = "lower1" .. ending, value = part(v[3], v[4], "0x44") },
                    { name = "upper1" .. ending, value = part(v[3], v[4], "0xee") },
                }
                return steps,
                    {
                        part("lower0" .. ending, "lower1" .. ending, "0x88"),
                        part("lower0" .. ending, "lower1" .. ending, "0xdd"),
                        part("upper0" .. ending, "upper1" .. ending, "0x88"),
                        part("upper0" .. ending, "upper1" .. ending, "0xdd"),
                    }
            end,
            round = function(v) return call("cvtps_epi32", v) end,
            -- The word of these parts.
            unite = function(bytes)
                return call("or_si512", call("or_si512", bytes[1], bytes[2]), call("or_si512", bytes[3], bytes[4]))
            end,
        },
    },
}
local words = avx512.type_needs.i8.integer_sums
byte_scores.two(words, {
    left = function(v, bits) return call("slli_epi32", v, tostring(bits)) end,
    right = function(v, bits) return call("srli_epi32", v, tostring(bits)) end,
    masked = function(v, mask) return call("and_si512", v, call("set1_epi32", mask)) end,
    add = function(a, b) return call("add_epi32", a, b) end,
    store = function(base, offset, q) return store_bytes(128, at(base, offset), call("cvtepi32_epi8", q)) end,
    dot = function(sum, scores, rows) return call("dpbusd_epi32", sum, scores, rows) end,
})
words.nibbles = tools.gather_nibbles(words)
words.bytes.nibbles = tools.gather_nibbles(words.bytes)
avx512.type_needs.i16 =
    { flags = { "-mavx512vnni" }, guard = "defined(__AVX512VNNI__)", leaf7_ecx = 1 << 11, feature = "avx512vnni" }
function avx512.dot_i16(sum, a, b) return call("dpwssd_epi32", sum, a, b) end
function avx512.store_i16(base, offset, a, b) -- packs_epi32 packs each quarter on its own
    local quarters = call("packs_epi32", call("cvtps_epi32", a), call("cvtps_epi32", b))
    return avx512.store_words(
        base,
        offset,
        call("permutexvar_epi64", call("setr_epi64", "0, 2, 4, 6, 1, 3, 5, 7"), quarters)
    )
end
function avx512.dot_i8(sum, a, b) return call("dpbusd_epi32", sum, a, b) end
function avx512.store_quads(base, offset, a, b, c, d)
    local order = call("setr_epi32", "0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15")
    return avx512.store_words(base, offset, call("permutexvar_epi32", order, tools.bytes_of(a, b, c, d)))
end

-- Reduces 4 or 8 vectors side by side, 8 numbers left of each, then 4, 2 and 1: the steps, whose names begin with `op`,
-- and a vector whose lane k is what is left of the k-th.
local function reduce_together(op, list)
    local steps = {}
    local function let(name, a, b)
        steps[#steps + 1] = { name = op .. "_" .. name, value = call(op .. "_epi32", a, b) }
        return steps[#steps].name
    end
    -- Each pair of vectors becomes one.
    local function join(name, first_part, second_part)
        local joined = {}
        for k = 1, #list, 2 do
            local a, b = list[k], list[k + 1]
            joined[#joined + 1] = let(name .. (#list > 2 and #joined or ""), first_part(a, b), second_part(a, b))
        end
        list = joined
    end
    local function parts(mask)
        return function(a, b) return call("shuffle_i64x2", a, b, mask) end
    end
    local function pairs_of(half)
        return function(a, b) return call("unpack" .. half .. "_epi64", a, b) end
    end
    local function fold(name, mask) list = { let(name, list[1], call("shuffle_epi32", list[1], mask)) } end
    local eight = #list == 8
    join("eight", parts "0x44", parts "0xee")
    join("four", parts "0x88", parts "0xdd")
    if eight then
        join("two", pairs_of "lo", pairs_of "hi")
    else
        fold("two", "0x4e")
    end
    fold("one", "0xb1")
    local order = "0, 4, 8, 12, 2, 6, 10, 14, 0, 4, 8, 12, 2, 6, 10, 14"
    return steps, call("permutexvar_epi32", call("setr_epi32", order), list[1])
end
function avx512.largest_of(magnitudes)
    local steps, all = reduce_together("max", magnitudes)
    return steps, avx512.as_floats(all)
end
function avx512.sums_of(list) return reduce_together("add", list) end
function avx512.store_words_partial(base, offset, n, words)
    return call("mask_storeu_epi32", at(base, offset), first(n), words)
end

-- A mask of bytes puts each lowest one in its place: four operations less than shifting and masking each by itself.
avx512.helpers = {
    {
        name = "avx512_quads",
        includes = avx512.includes,
        guard = avx512.guard,
        text = [[
/* The lowest bytes of the words of a, b, c and d side by side, a's lowest. */
static inline __m512i $avx512_quads(__m512i a, __m512i b, __m512i c, __m512i d)
{
    const __m512i lowest = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0x00000000);
    const __m512i two = _mm512_mask_shuffle_epi8(a, 0x2222222222222222u, b, lowest);
    const __m512i three = _mm512_mask_shuffle_epi8(two, 0x4444444444444444u, c, lowest);
    return _mm512_mask_shuffle_epi8(three, 0x8888888888888888u, d, lowest);
}]],
    },
}
function avx512.pack_i8(a, b, c, d)
    local function rounded(v) return call("cvtps_epi32", v) end
    return expression.call("$avx512_quads", rounded(a), rounded(b), rounded(c), rounded(d))
end

tools.add_bf16( -- packus_epi32 packs each quarter on its own
    avx512,
    function(a, b)
        local order = call("setr_epi64", "0, 2, 4, 6, 1, 3, 5, 7")
        return call("permutexvar_epi64", order, call("packus_epi32", a, b))
    end,
    "_mm512_mask_set1_epi32(nearest, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), -1)"
)
tools.add_nibbles(avx512)

function avx512.store_partial(base, offset, n, v) return call("mask_storeu_ps", at(base, offset), first(n), v) end
function avx512.abs(v) return call("abs_ps", v) end
function avx512.min(a, b) return call("min_ps", a, b) end
function avx512.entry(list, v)
    local function half(first) return call("setr_ps", table.concat(list, ", ", first, first + 15)) end
    return call("permutex2var_ps", half(1), call("castps_si512", v), half(17))
end
function avx512.less(a, b) return call("cmp_ps_mask", a, b, "_CMP_LT_OQ") end
function avx512.select(mask, a, b) return call("mask_blend_ps", mask, b, a) end
function avx512.any(mask) return mask .. " != 0" end
function avx512.index_select(mask, a, b) return call("mask_blend_epi32", mask, b, a) end
function avx512.index_or_if_positive(index, z, bit)
    return call(
        "mask_or_epi32",
        index,
        call("cmp_ps_mask", z, call("setzero_ps"), "_CMP_GT_OQ"),
        index,
        call("set1_epi32", bit)
    )
end
function avx512.index_store(base, offset, index)
    return store_bytes(256, at(base, offset), call("cvtepi32_epi16", index))
end
function avx512.index_load(base, offset) return call("cvtepu16_epi32", load_bytes(256, at(base, offset))) end
function avx512.index_has(index, bit) return call("test_epi32_mask", index, avx512.index_broadcast(tostring(bit))) end

function avx512.reduce(v, word) return {}, call("reduce_" .. word .. "_ps", v) end

-- 16x16: quads, then a 4x4 transpose of 128-bit quarters.
function avx512.transpose(r)
    local steps, out = {}, {}
    local let = tools.transpose_quads(r, steps)
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
    for c = 0, 15 do
        out[#out + 1] = "column" .. c
    end
    return steps, out
end

function avx512.lane_sums(r) return tools.lane_sums(r, "shuffle_f32x4", "0x88", "0xdd") end

avx512.narrower = "avx2"

return avx512
