-- SSE4.1, of CPUs without AVX: 4 lanes, 16 registers, no FMA. They may have neither XGETBV nor CPUID's leaf 7.

local expression = require "gen.isa.expression"

local sse4, tools = require "gen.isa.parts.x86"(128)
local at, cast, call = expression.sum, expression.cast, tools.call

sse4.name, sse4.lanes, sse4.registers = "sse4", 4, 16
sse4.l2_bytes = 256 << 10
sse4.flags = { "-msse4.1" }
sse4.guard = "defined(__SSE4_1__)"
sse4.cpu = { leaf1_ecx = 1 << 9 | 1 << 19, leaf7_ebx = 0, xcr0 = 0 } -- SSSE3, SSE4.1
sse4.emulator = { "qemu-x86_64-static", "-cpu", "Nehalem" }
sse4.vector, sse4.index, sse4.mask = "__m128", "__m128i", "__m128"

sse4.helpers = {
    {
        name = "sse4_from_f16",
        includes = sse4.includes,
        guard = sse4.guard,
        text = [[
/* IEEE half precision, finite, in the low halves of 32 bits. Exact. */
static inline __m128 $sse4_from_f16(__m128i half)
{
    const __m128i magnitude = _mm_and_si128(half, _mm_set1_epi32(0x7fff));
    const __m128i sign = _mm_slli_epi32(_mm_xor_si128(half, magnitude), 16);
    const __m128i normal = _mm_add_epi32(_mm_slli_epi32(magnitude, 13), _mm_set1_epi32(112 << 23));
    /* 0 and subnormal: units of 2^-24 */
    const __m128 small = _mm_mul_ps(_mm_cvtepi32_ps(magnitude), _mm_set1_ps(5.9604644775390625e-8f));
    const __m128 is_normal = _mm_castsi128_ps(_mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x3ff)));
    return _mm_or_ps(_mm_blendv_ps(small, _mm_castsi128_ps(normal), is_normal), _mm_castsi128_ps(sign));
}]],
    },
    {
        name = "sse4_store_f16",
        includes = sse4.includes,
        guard = sse4.guard,
        text = [[
static inline void $sse4_store_f16(uint16_t *to, __m128 v)
{
    float lane[4];
    _mm_storeu_ps(lane, v);
    for (unsigned i = 0; i < 4; ++i)
        to[i] = $to_f16(lane[i]);
}]],
    },
    tools.four_bytes,
    {
        name = "sse4_store_first",
        includes = sse4.includes,
        guard = sse4.guard,
        text = [[
/* The first n lanes, 1 to 3. */
static inline void $sse4_store_first(float *to, unsigned n, __m128 v)
{
    if (n == 1) {
        _mm_store_ss(to, v);
        return;
    }
    _mm_storel_pi((__m64 *) (void *) to, v);
    if (n == 3)
        _mm_store_ss(to + 2, _mm_movehl_ps(v, v));
}]],
    },
}

local function low_half(base)
    return expression.call("_mm_loadl_epi64", cast("const __m128i *", cast("const void *", base)))
end
local function four_bytes(base, const) return "*" .. cast(const .. "$sse4_bytes *", cast(const .. "void *", base)) end

-- Elements 0 … n-1 of an array, zeros after them.
local function few_elements(base, n, type)
    local list = {}
    for lane = 0, 3 do
        local element = lane < n and expression.index(base, lane) or "0"
        list[lane + 1] = lane < n and type and cast(type, element) or element
    end
    return call("setr_epi32", table.unpack(list))
end

function sse4.load_partial(base, offset, n)
    local from = at(base, offset)
    if n == 1 then return call("load_ss", from) end
    local two = call("castsi128_ps", low_half(from))
    return n == 2 and two or call("movelh_ps", two, call("load_ss", at(from, 2)))
end
function sse4.load_words_partial(base, offset, n) return few_elements(at(base, offset), n, "int") end
function sse4.store_partial(base, offset, n, v) return expression.call("$sse4_store_first", at(base, offset), n, v) end

local function upper_half(v) return call("castsi128_ps", call("slli_epi32", v, "16")) end
function sse4.load_bf16(base) return upper_half(call("cvtepu16_epi32", low_half(base))) end
function sse4.load_f16(base) return expression.call("$sse4_from_f16", call("cvtepu16_epi32", low_half(base))) end
function sse4.load_i8(base)
    return call("cvtepi32_ps", call("cvtepi8_epi32", call("cvtsi32_si128", four_bytes(base, "const "))))
end
function sse4.load_partial_bf16(base, n) return upper_half(few_elements(base, n)) end
function sse4.load_partial_f16(base, n) return expression.call("$sse4_from_f16", few_elements(base, n)) end
function sse4.load_partial_i8(base, n) return call("cvtepi32_ps", few_elements(base, n)) end
-- As in gen/isa/avx2.lua, of bytes with the sign extended to 32 bits.
local function from_e4m3(bytes)
    local halves = call("and_si128", call("slli_epi32", bytes, 7), call("set1_epi32", "0xbf80"))
    return expression.call("$sse4_from_f16", halves)
end
function sse4.load_e4m3(base)
    local bytes = call("cvtsi32_si128", four_bytes(base, "const "))
    return from_e4m3(call("cvtepi8_epi32", bytes))
end
function sse4.load_partial_e4m3(base, n) return from_e4m3(few_elements(base, n, "int8_t")) end
function sse4.store_f16(base, offset, v) return expression.call("$sse4_store_f16", at(base, offset), v) end
function sse4.store_i8(base, offset, v)
    local whole = call("cvtps_epi32", v)
    local bytes = call("packs_epi16", call("packs_epi32", whole, whole), call("setzero_si128"))
    return four_bytes(at(base, offset), "") .. " = " .. call("cvtsi128_si32", bytes)
end
tools.add_nibbles(sse4)

function sse4.dot_i16(sum, a, b) return call("add_epi32", sum, call("madd_epi16", a, b)) end
function sse4.store_i16(base, offset, a, b)
    return sse4.store_words(base, offset, call("packs_epi32", call("cvtps_epi32", a), call("cvtps_epi32", b)))
end
function sse4.store_quads(base, offset, a, b, c, d)
    local bytes = tools.bytes_of(a, b, c, d)
    return sse4.store_words(base, offset, bytes)
end

tools.add_bf16(
    sse4,
    function(a, b) return call("packus_epi32", a, b) end,
    "_mm_or_si128(nearest, _mm_castps_si128(_mm_cmpunord_ps(v, v)))"
)
tools.add_pairs_of_bytes(sse4)

function sse4.fma(a, b, c) return call("add_ps", call("mul_ps", a, b), c) end
function sse4.abs(v) return call("andnot_ps", call("set1_ps", "-0.0f"), v) end
function sse4.less(a, b) return call("cmplt_ps", a, b) end
function sse4.select(mask, a, b) return call("blendv_ps", b, a, mask) end
function sse4.any(mask) return call("movemask_ps", mask) .. " != 0" end
function sse4.index_select(mask, a, b) return call("blendv_epi8", b, a, call("castps_si128", mask)) end
function sse4.index_or_if_positive(index, z, bit)
    local positive = call("castps_si128", call("cmpgt_ps", z, call("setzero_ps")))
    return call("or_si128", index, call("and_si128", positive, call("set1_epi32", bit)))
end
function sse4.index_store(base, offset, index)
    return expression.call(
        "_mm_storel_epi64",
        cast("__m128i *", cast("void *", at(base, offset))),
        call("packus_epi32", index, index)
    )
end

-- Halves, then the last two.
function sse4.reduce(v, word)
    return { { type = "__m128", name = "two", value = call(word .. "_ps", v, call("movehl_ps", v, v)) } },
        call("cvtss_f32", call(word .. "_ss", "two", call("shuffle_ps", "two", "two", "1")))
end

function sse4.transpose(r)
    local steps = {}
    tools.transpose_quads(r, steps)
    return steps, { "quad0", "quad1", "quad2", "quad3" }
end

function sse4.lane_sums(r) return tools.lane_sums(r) end

return sse4
