-- NEON of AArch64: 4 lanes, 32 registers.

local expression = require "gen.isa.expression"

local at, call, cast = expression.sum, expression.call, expression.cast
local function f32(name, ...) return call(name .. "q_f32", ...) end

local neon = {
    name = "neon",
    any_alignment = true,
    lanes = 4,
    registers = 32,
    l2_bytes = 1 << 20,
    architecture = "aarch64",
    flags = {},
    guard = "defined(__aarch64__) && defined(__ARM_NEON)",
    includes = { "<arm_neon.h>" },
    vector = "float32x4_t",
    index = "uint32x4_t",
    mask = "uint32x4_t",
    target = "aarch64",
    emulator = { "qemu-aarch64-static", "-cpu", "cortex-a72" },
    helpers = {},
}

-- Words that take several instructions.
local function helper(name, text)
    neon.helpers[#neon.helpers + 1] =
        { name = "neon_" .. name, includes = neon.includes, guard = neon.guard, text = text }
end
helper(
    "bytes",
    [[
typedef uint32_t __attribute__((may_alias, aligned(1))) $neon_bytes; /* four bytes at any address */]]
)
helper(
    "four_bytes",
    [[
/* Four bytes, and zeros. */
static inline uint8x8_t $neon_four_bytes(const void *from)
{
    return vreinterpret_u8_u32(vset_lane_u32(*(const $neon_bytes *) from, vdup_n_u32(0), 0));
}]]
)
helper(
    "store_three",
    [[
static inline void $neon_store_three(float *to, float32x4_t v)
{
    vst1_f32(to, vget_low_f32(v));
    vst1q_lane_f32(to + 2, v, 2);
}]]
)
helper(
    "load_i8",
    [[
static inline float32x4_t $neon_load_i8(const int8_t *from)
{
    const int16x8_t halves = vmovl_s8(vreinterpret_s8_u8($neon_four_bytes(from)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves)));
}]]
)
helper(
    "store_i8",
    [[
/* The nearest integers. */
static inline void $neon_store_i8(int8_t *to, float32x4_t v)
{
    const int16x4_t halves = vqmovn_s32(vcvtnq_s32_f32(v));
    const int8x8_t bytes = vqmovn_s16(vcombine_s16(halves, halves));
    *($neon_bytes *) (void *) to = vget_lane_u32(vreinterpret_u32_s8(bytes), 0);
}]]
)
helper(
    "dot_i16",
    [[
/* sum + the products of both 16-bit integers in each word of a and of b. */
static inline uint32x4_t $neon_dot_i16(uint32x4_t sum, uint32x4_t a, uint32x4_t b)
{
    const int16x4_t a_low = vreinterpret_s16_u16(vmovn_u32(a)), a_high = vreinterpret_s16_u16(vshrn_n_u32(a, 16));
    const int16x4_t b_low = vreinterpret_s16_u16(vmovn_u32(b)), b_high = vreinterpret_s16_u16(vshrn_n_u32(b, 16));
    const int32x4_t low = vmlal_s16(vreinterpretq_s32_u32(sum), a_low, b_low);
    return vreinterpretq_u32_s32(vmlal_s16(low, a_high, b_high));
}]]
)
helper(
    "store_i16",
    [[
/* The nearest integers, those of a first. */
static inline void $neon_store_i16(void *to, float32x4_t a, float32x4_t b)
{
    const int16x8_t halves = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a)), vmovn_s32(vcvtnq_s32_f32(b)));
    vst1q_u8((uint8_t *) to, vreinterpretq_u8_s16(halves));
}]]
)

helper(
    "dot_i8",
    [[
/* sum + the products of the four bytes in each word of a, without a sign, and of b, with one. */
static inline uint32x4_t $neon_dot_i8(uint32x4_t sum, uint32x4_t a, uint32x4_t b)
{
    const uint8x16_t bytes = vreinterpretq_u8_u32(a);
    const int8x16_t others = vreinterpretq_s8_u32(b);
    const int16x8_t a_low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
    const int16x8_t a_high = vreinterpretq_s16_u16(vmovl_high_u8(bytes));
    /* 255 times 128 is below 2^15 */
    const int32x4_t low = vpaddlq_s16(vmulq_s16(a_low, vmovl_s8(vget_low_s8(others))));
    const int32x4_t high = vpaddlq_s16(vmulq_s16(a_high, vmovl_high_s8(others)));
    return vaddq_u32(sum, vreinterpretq_u32_s32(vpaddq_s32(low, high)));
}]]
)
helper(
    "store_quads",
    [[
/* The nearest integers, those of a first. */
static inline void $neon_store_quads(void *to, float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d)
{
    const int16x8_t first = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a)), vmovn_s32(vcvtnq_s32_f32(b)));
    const int16x8_t second = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(c)), vmovn_s32(vcvtnq_s32_f32(d)));
    vst1q_u8((uint8_t *) to, vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(first), vmovn_s16(second))));
}]]
)

helper(
    "store_bf16",
    [[
/* The upper halves of the nearest floats that have no lower ones, those of a first; ties to even. NaN stays NaN. */
static inline uint16x4_t $neon_to_bf16(float32x4_t v)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t nearest = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), nearest, vdupq_n_u32(0x7fc00000)), 16);
}

static inline void $neon_store_bf16(void *to, float32x4_t a, float32x4_t b)
{
    vst1q_u8((uint8_t *) to, vreinterpretq_u8_u16(vcombine_u16($neon_to_bf16(a), $neon_to_bf16(b))));
}]]
)

local function prefetch(locality)
    return function(base, offset)
        local line = cast("const char *", at(base, offset))
        return call("__builtin_prefetch", line, 0, locality)
    end
end
neon.prefetch_l1, neon.prefetch_l2, neon.prefetch_nta = prefetch(3), prefetch(2), prefetch(0)

function neon.zero() return "vdupq_n_f32(0.0f)" end
function neon.broadcast(s) return call("vdupq_n_f32", s) end
function neon.load(base, offset) return f32("vld1", at(base, offset)) end
neon.load_unaligned = neon.load
-- The first n of four elements, 1 to 3, and zeros; `type` as intrinsics call it.
local function first_of_four(type, from, n)
    local zeros = type == "f32" and "vdupq_n_f32(0.0f)" or "vdupq_n_" .. type .. "(0)"
    if n == 1 then return call("vld1q_lane_" .. type, from, zeros, 0) end
    local two = call("vcombine_" .. type, call("vld1_" .. type, from), (zeros:gsub("^vdupq", "vdup")))
    return n == 2 and two or call("vld1q_lane_" .. type, at(from, 2), two, 2)
end
-- The first n elements and zeros of half a vector of smaller ones.
local function first_of_half(type, from, n)
    local vector = call("vdup_n_" .. type, 0)
    for lane = 0, n - 1 do
        vector = call("vld1_lane_" .. type, at(from, lane), vector, lane)
    end
    return vector
end
function neon.load_partial(base, offset, n) return first_of_four("f32", at(base, offset), n) end
function neon.store(base, offset, v) return f32("vst1", at(base, offset), v) end
neon.store_unaligned = neon.store
function neon.store_partial(base, offset, n, v)
    local to = at(base, offset)
    if n == 1 then return call("vst1q_lane_f32", to, v, 0) end
    return n == 2 and call("vst1_f32", to, call("vget_low_f32", v)) or call("$neon_store_three", to, v)
end
for _, word in ipairs { "add", "sub", "mul", "div", "max" } do
    neon[word] = function(a, b) return f32("v" .. word, a, b) end
end
function neon.abs(v) return f32("vabs", v) end
function neon.fma(a, b, c) return f32("vfma", c, a, b) end
function neon.reciprocal_root(v) return f32("vdiv", f32("vsqrt", v), v) end
function neon.shifted_power(v)
    return call("vreinterpretq_f32_u32", call("vshlq_n_u32", call("vreinterpretq_u32_f32", v), "23"))
end
function neon.less(a, b) return f32("vclt", a, b) end
function neon.select(mask, a, b) return f32("vbsl", mask, a, b) end
function neon.any(mask) return call("vmaxvq_u32", mask) .. " != 0" end
function neon.index_zero() return "vdupq_n_u32(0)" end
function neon.index_broadcast(n) return call("vdupq_n_u32", n) end
function neon.index_add(a, b) return call("vaddq_u32", a, b) end
function neon.index_sub(a, b) return call("vsubq_u32", a, b) end
function neon.index_load(base, offset) return call("vmovl_u16", call("vld1_u16", at(base, offset))) end
function neon.index_has(index, bit) return call("vtstq_u32", index, call("vdupq_n_u32", bit)) end
function neon.index_xor(a, b) return call("veorq_u32", a, b) end
function neon.index_and(a, b) return call("vandq_u32", a, b) end
function neon.index_select(mask, a, b) return call("vbslq_u32", mask, a, b) end
function neon.index_or_if_positive(index, z, bit)
    return call("vorrq_u32", index, call("vandq_u32", f32("vcgt", z, neon.zero()), call("vdupq_n_u32", bit)))
end
function neon.index_store(base, offset, index) return call("vst1_u16", at(base, offset), call("vmovn_u32", index)) end

local function upper_half(halves) return call("vreinterpretq_f32_u32", call("vshll_n_u16", halves, "16")) end
local function from_half(halves) return call("vcvt_f32_f16", call("vreinterpret_f16_u16", halves)) end
function neon.load_bf16(base) return upper_half(call("vld1_u16", base)) end
function neon.load_f16(base) return from_half(call("vld1_u16", base)) end
function neon.load_i8(base) return call("$neon_load_i8", base) end
function neon.load_partial_bf16(base, n) return upper_half(first_of_half("u16", base, n)) end
function neon.load_partial_f16(base, n) return from_half(first_of_half("u16", base, n)) end
function neon.load_partial_i8(base, n)
    local halves = call("vget_low_s16", call("vmovl_s8", first_of_half("s8", base, n)))
    return call("vcvtq_f32_s32", call("vmovl_s16", halves))
end
-- fp8 in 16 bits each, moved to where half precision has fraction and exponent, whose bias is larger by 8: 1/256 of
-- each number, exactly. The sign is then one bit too low; added to itself it moves to its place.
local function from_e4m3(bytes)
    local halves = call("vshl_n_u16", bytes, 7)
    return from_half(call("vadd_u16", halves, call("vand_u16", halves, call("vdup_n_u16", "0x4000"))))
end
local function low_halves(bytes) return call("vget_low_u16", call("vmovl_u8", bytes)) end
function neon.load_partial_e4m3(base, n) return from_e4m3(low_halves(first_of_half("u8", base, n))) end
function neon.load_e4m3(base) return from_e4m3(low_halves(call("$neon_four_bytes", base))) end
-- As bytes: the elements in memory may be of any type.
function neon.load_words(base, offset)
    return call("vreinterpretq_u32_u8", call("vld1q_u8", cast("const uint8_t *", at(base, offset))))
end
function neon.store_words(base, offset, words)
    return call("vst1q_u8", cast("uint8_t *", at(base, offset)), call("vreinterpretq_u8_u32", words))
end
function neon.load_words_partial(base, offset, n) return first_of_four("u32", at(base, offset), n) end
function neon.unpack_bf16(words)
    return {
        call("vreinterpretq_f32_u32", call("vshlq_n_u32", words, "16")),
        call("vreinterpretq_f32_u32", call("vandq_u32", words, "vdupq_n_u32(0xffff0000u)")),
    }
end

neon.dot_bf16 = expression.dot_bf16(neon)
function neon.pack_bf16(a, b)
    local upper = call("vshll_n_u16", call("$neon_to_bf16", b), "16")
    return call("vorrq_u32", call("vmovl_u16", call("$neon_to_bf16", a)), upper)
end
function neon.store_bf16(base, offset, a, b) return call("$neon_store_bf16", at(base, offset), a, b) end

function neon.store_f16(base, offset, v)
    return call("vst1_u16", at(base, offset), call("vreinterpret_u16_f16", call("vcvt_f16_f32", v)))
end
function neon.store_i8(base, offset, v) return call("$neon_store_i8", at(base, offset), v) end
function neon.store_i16(base, offset, a, b) return call("$neon_store_i16", at(base, offset), a, b) end
local function nearest_integers(v) return call("vreinterpretq_u32_s32", call("vcvtnq_s32_f32", v)) end
function neon.pack_i16(a, b) return call("vsliq_n_u32", nearest_integers(a), nearest_integers(b), "16") end
function neon.pack_i8(a, b, c, d)
    local word = nearest_integers(a)
    for place, v in ipairs { b, c, d } do
        word = call("vsliq_n_u32", word, nearest_integers(v), tostring(8 * place))
    end
    return word
end
function neon.store_quads(base, offset, a, b, c, d) return call("$neon_store_quads", at(base, offset), a, b, c, d) end
function neon.dot_i8(sum, a, b) return call("$neon_dot_i8", sum, a, b) end
function neon.dot_i16(sum, a, b) return call("$neon_dot_i16", sum, a, b) end
function neon.high_nibbles(words)
    return call("vreinterpretq_u32_u8", call("vshrq_n_u8", call("vreinterpretq_u8_u32", words), 4))
end
neon.unpack_i4, neon.unpack_i8 = expression.unpacked(function(words, mask, right)
    local last = right and call("vshrq_n_u32", words, right)
    return call("vcvtq_f32_u32", last or call("vandq_u32", words, call("vdupq_n_u32", mask .. "u")))
end)
function neon.float_of(index) return call("vcvtq_f32_s32", call("vreinterpretq_s32_u32", index)) end
function neon.max_magnitude(magnitudes, v)
    local bits = call("vreinterpretq_s32_f32", neon.abs(v))
    return call("vreinterpretq_u32_s32", call("vmaxq_s32", call("vreinterpretq_s32_u32", magnitudes), bits))
end
function neon.as_floats(index) return call("vreinterpretq_f32_u32", index) end
function neon.reduce_magnitudes(magnitudes)
    local largest = call("vdupq_n_u32", call("vmaxvq_u32", magnitudes))
    return {}, call("vgetq_lane_f32", call("vreinterpretq_f32_u32", largest), "0")
end

-- Pairs of rows, then pairs of pairs.
function neon.transpose(r)
    local function pairs64(word, a, b)
        return call(
            "vreinterpretq_f32_f64",
            call("vtrn" .. word .. "q_f64", call("vreinterpretq_f64_f32", a), call("vreinterpretq_f64_f32", b))
        )
    end
    return {
        { name = "even01", value = f32("vtrn1", r[1], r[2]) },
        { name = "odd01", value = f32("vtrn2", r[1], r[2]) },
        { name = "even23", value = f32("vtrn1", r[3], r[4]) },
        { name = "odd23", value = f32("vtrn2", r[3], r[4]) },
        { name = "column0", value = pairs64(1, "even01", "even23") },
        { name = "column1", value = pairs64(1, "odd01", "odd23") },
        { name = "column2", value = pairs64(2, "even01", "even23") },
        { name = "column3", value = pairs64(2, "odd01", "odd23") },
    }, { "column0", "column1", "column2", "column3" }
end

function neon.reduce(v, word) return {}, call(word == "max" and "vmaxvq_f32" or "vaddvq_f32", v) end

return neon
