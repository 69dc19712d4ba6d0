-- MVE of Armv8.1-M (Helium): 4 lanes, 8 registers; short vectors by predicates. It has neither division nor roots.

local expression = require "gen.isa.expression"

local at, call = expression.sum, expression.call
local function first(n) return call("vctp32q", n) end

local mve = {
    name = "mve",
    any_alignment = true,
    lanes = 4,
    registers = 8,
    l2_bytes = 64 << 10,
    flags = {},
    guard = "defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)",
    includes = { "<arm_mve.h>" },
    vector = "float32x4_t",
    index = "uint32x4_t",
    mask = "mve_pred16_t",
    target = "cortex-m55",
}

mve.helpers = {
    {
        name = "mve_divide",
        includes = mve.includes,
        guard = mve.guard,
        text = [[
static inline float32x4_t $mve_divide(float32x4_t a, float32x4_t b)
{
    float32x4_t quotient = a;
    quotient = vsetq_lane_f32(vgetq_lane_f32(a, 0) / vgetq_lane_f32(b, 0), quotient, 0);
    quotient = vsetq_lane_f32(vgetq_lane_f32(a, 1) / vgetq_lane_f32(b, 1), quotient, 1);
    quotient = vsetq_lane_f32(vgetq_lane_f32(a, 2) / vgetq_lane_f32(b, 2), quotient, 2);
    return vsetq_lane_f32(vgetq_lane_f32(a, 3) / vgetq_lane_f32(b, 3), quotient, 3);
}]],
    },
    {
        name = "mve_reciprocal_root",
        includes = mve.includes,
        guard = mve.guard,
        text = [[
/* 1/sqrt(v) for a normal v > 0, within 2.2 ulp: Newton's iteration from a halved exponent. NaN for NaN and infinity. */
static inline float32x4_t $mve_reciprocal_root(float32x4_t v)
{
    const uint32x4_t halved = vshrq_n_u32(vreinterpretq_u32_f32(v), 1);
    const float32x4_t half = vmulq_n_f32(v, 0.5f);
    float32x4_t root = vreinterpretq_f32_u32(vsubq_u32(vdupq_n_u32(0x5f375a86u), halved));
    for (int step = 0; step < 3; ++step)
        root = vmulq_f32(root, vsubq_f32(vdupq_n_f32(1.5f), vmulq_f32(vmulq_f32(half, root), root)));
    return vfmaq_n_f32(root, v, 0.0f);
}]],
    },
    {
        name = "mve_from_f16",
        includes = mve.includes,
        guard = mve.guard,
        text = [[
/* IEEE half precision, finite, in the low halves of 32 bits. Exact; by integers, for gas 2.40 encodes vcvtb of some
   registers wrongly. */
static inline float32x4_t $mve_from_f16(uint32x4_t half)
{
    const uint32x4_t magnitude = vandq_u32(half, vdupq_n_u32(0x7fffu));
    const uint32x4_t sign = vshlq_n_u32(vandq_u32(half, vdupq_n_u32(0x8000u)), 16);
    const uint32x4_t normal = vaddq_u32(vshlq_n_u32(magnitude, 13), vdupq_n_u32(112u << 23));
    /* 0 and subnormal: units of 2^-24 */
    const uint32x4_t small = vreinterpretq_u32_f32(vmulq_n_f32(vcvtq_f32_u32(magnitude), 5.9604644775390625e-8f));
    return vreinterpretq_f32_u32(vorrq_u32(sign, vpselq_u32(normal, small, vcmphiq_n_u32(magnitude, 0x3ffu))));
}]],
    },
}

function mve.zero() return "vdupq_n_f32(0.0f)" end
function mve.broadcast(s) return call("vdupq_n_f32", s) end
function mve.load(base, offset) return call("vldrwq_f32", at(base, offset)) end
mve.load_unaligned = mve.load
function mve.load_partial(base, offset, n) return call("vldrwq_z_f32", at(base, offset), first(n)) end
function mve.store(base, offset, v) return call("vstrwq_f32", at(base, offset), v) end
mve.store_unaligned = mve.store
function mve.store_partial(base, offset, n, v) return call("vstrwq_p_f32", at(base, offset), v, first(n)) end
for _, word in ipairs { "add", "sub", "mul" } do
    mve[word] = function(a, b) return call("v" .. word .. "q_f32", a, b) end
end
function mve.div(a, b) return call("$mve_divide", a, b) end
function mve.max(a, b) return call("vpselq_f32", a, b, call("vcmpgtq_f32", a, b)) end
function mve.abs(v) return call("vabsq_f32", v) end
function mve.fma(a, b, c) return call("vfmaq_f32", c, a, b) end
function mve.reciprocal_root(v) return call("$mve_reciprocal_root", v) end
function mve.round_negative(v) return call("vrndnq_f32", v) end
function mve.power_of_two(n)
    return call(
        "vreinterpretq_f32_s32",
        call("vshlq_n_s32", call("vaddq_n_s32", call("vcvtq_s32_f32", n), "127"), "23")
    )
end
-- Not vcmplt, which holds where a lane is NaN.
function mve.less(a, b) return call("vcmpgtq_f32", b, a) end
function mve.select(mask, a, b) return call("vpselq_f32", a, b, mask) end
function mve.any(mask) return mask .. " != 0" end
function mve.index_zero() return "vdupq_n_u32(0)" end
function mve.index_broadcast(n) return call("vdupq_n_u32", n) end
function mve.index_xor(a, b) return call("veorq_u32", a, b) end
function mve.index_and(a, b) return call("vandq_u32", a, b) end
function mve.index_select(mask, a, b) return call("vpselq_u32", a, b, mask) end
function mve.index_or_if_positive(index, z, bit)
    return call("vorrq_m_u32", index, index, call("vdupq_n_u32", bit), call("vcmpgtq_n_f32", z, "0.0f"))
end
function mve.index_store(base, offset, index) return call("vstrhq_u32", at(base, offset), index) end

local function upper_half(v) return call("vreinterpretq_f32_u32", call("vshlq_n_u32", v, "16")) end
local function from_half(v) return call("$mve_from_f16", v) end
function mve.load_bf16(base) return upper_half(call("vldrhq_u32", base)) end
function mve.load_f16(base) return from_half(call("vldrhq_u32", base)) end
function mve.load_i8(base) return call("vcvtq_f32_s32", call("vldrbq_s32", base)) end
function mve.load_partial_bf16(base, n) return upper_half(call("vldrhq_z_u32", base, first(n))) end
function mve.load_partial_f16(base, n) return from_half(call("vldrhq_z_u32", base, first(n))) end
function mve.load_partial_i8(base, n) return call("vcvtq_f32_s32", call("vldrbq_z_s32", base, first(n))) end
-- fp8 with the sign extended, moved to where half precision has fraction and exponent; of the copies of the sign only
-- the first one is left. The exponent's bias is larger by 8: 1/256 of each number, exactly.
local function from_e4m3(bytes)
    local halves = call("vshlq_n_u32", call("vreinterpretq_u32_s32", bytes), 7)
    return from_half(call("vandq_u32", halves, call("vdupq_n_u32", "0xbf80u")))
end
local function signed(base) return expression.cast("const int8_t *", base) end
function mve.load_e4m3(base) return from_e4m3(call("vldrbq_s32", signed(base))) end
function mve.load_partial_e4m3(base, n) return from_e4m3(call("vldrbq_z_s32", signed(base), first(n))) end
function mve.load_words(base, offset) return call("vldrwq_u32", at(base, offset)) end
function mve.load_words_partial(base, offset, n) return call("vldrwq_z_u32", at(base, offset), first(n)) end
function mve.unpack_bf16(words)
    return { upper_half(words), call("vreinterpretq_f32_u32", call("vandq_u32", words, "vdupq_n_u32(0xffff0000u)")) }
end
mve.unpack_i4, mve.unpack_i8 = expression.unpacked(function(words, mask, right)
    local last = right and call("vshrq_n_u32", words, right)
    return call("vcvtq_f32_u32", last or call("vandq_u32", words, call("vdupq_n_u32", mask .. "u")))
end)

-- Lane by lane: registers are few, and scalar registers are parts of them.
function mve.transpose(r)
    local steps, out = {}, {}
    for c = 0, 3 do
        local value = r[1]
        if c ~= 0 then value = call("vdupq_n_f32", call("vgetq_lane_f32", r[1], c)) end
        for lane = 1, 3 do
            value = call("vsetq_lane_f32", call("vgetq_lane_f32", r[lane + 1], c), value, lane)
        end
        steps[#steps + 1], out[#out + 1] = { name = "column" .. c, value = value }, "column" .. c
    end
    return steps, out
end

function mve.reduce(v, word)
    local list = {}
    for lane = 0, 3 do
        list[lane + 1] = call("vgetq_lane_f32", v, lane)
    end
    if word == "max" then return {}, call("vmaxnmvq_f32", list[1], v) end
    return {}, table.concat(list, " + ")
end

return mve
