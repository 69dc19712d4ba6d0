-- NEON of AArch64: 4 lanes, 32 registers.

local expression = require "gen.isa.expression"

local at, call = expression.address, expression.call
local function f32(name, ...) return call(name .. "q_f32", ...) end

local neon = {
    name = "neon",
    any_alignment = true,
    lanes = 4,
    registers = 32,
    l2_bytes = 256 << 10,
    flags = {},
    guard = "defined(__aarch64__) && defined(__ARM_NEON)",
    includes = { "<arm_neon.h>" },
    vector = "float32x4_t",
    index = "uint32x4_t",
    mask = "uint32x4_t",
    target = "aarch64",
    helpers = {},
}

-- The first n elements and zeros, where no instruction loads or stores so few.
for _, row in ipairs {
    { name = "", type = "float", result = "float32x4_t", lane = "float", make = "vld1q_f32(lane)" },
    { name = "_words", type = "uint32_t", result = "uint32x4_t", lane = "uint32_t", make = "vld1q_u32(lane)" },
    { name = "_halves", type = "uint16_t", result = "uint16x4_t", lane = "uint16_t", make = "vld1_u16(lane)" },
    {
        name = "_i8",
        type = "int8_t",
        result = "float32x4_t",
        lane = "int32_t",
        make = "vcvtq_f32_s32(vld1q_s32(lane))",
    },
    { name = "_e4m3", type = "uint8_t", result = "uint16x4_t", lane = "uint16_t", make = "vld1_u16(lane)" },
} do
    neon.helpers[#neon.helpers + 1] = {
        name = "neon_load_first" .. row.name,
        includes = neon.includes,
        guard = neon.guard,
        text = ([[
static inline <result> $neon_load_first<name>(const <type> *from, unsigned n)
{
    <lane> lane[4] = { 0, 0, 0, 0 };
    for (unsigned i = 0; i < n; ++i)
        lane[i] = from[i];
    return <make>;
}]]):gsub("<(%l+)>", row),
    }
end
neon.helpers[#neon.helpers + 1] = {
    name = "neon_store_first",
    includes = neon.includes,
    guard = neon.guard,
    text = [[
static inline void $neon_store_first(float *to, unsigned n, float32x4_t v)
{
    float lane[4];
    vst1q_f32(lane, v);
    for (unsigned i = 0; i < n; ++i)
        to[i] = lane[i];
}]],
}

function neon.zero() return "vdupq_n_f32(0.0f)" end
function neon.broadcast(s) return call("vdupq_n_f32", s) end
function neon.load(base, offset) return f32("vld1", at(base, offset)) end
neon.load_unaligned = neon.load
function neon.load_partial(base, offset, n) return call("$neon_load_first", at(base, offset), n) end
function neon.store(base, offset, v) return f32("vst1", at(base, offset), v) end
neon.store_unaligned = neon.store
function neon.store_partial(base, offset, n, v) return call("$neon_store_first", at(base, offset), n, v) end
for _, word in ipairs { "add", "sub", "mul", "div", "max" } do
    neon[word] = function(a, b) return f32("v" .. word, a, b) end
end
function neon.abs(v) return f32("vabs", v) end
function neon.fma(a, b, c) return f32("vfma", c, a, b) end
function neon.reciprocal_root(v) return f32("vdiv", "vdupq_n_f32(1.0f)", f32("vsqrt", v)) end
function neon.round_negative(v) return f32("vrndn", v) end
function neon.power_of_two(n)
    return call(
        "vreinterpretq_f32_s32",
        call("vshlq_n_s32", call("vaddq_s32", call("vcvtq_s32_f32", n), "vdupq_n_s32(127)"), "23")
    )
end
function neon.less(a, b) return f32("vclt", a, b) end
function neon.select(mask, a, b) return f32("vbsl", mask, a, b) end
function neon.any(mask) return call("vmaxvq_u32", mask) .. " != 0" end
function neon.index_zero() return "vdupq_n_u32(0)" end
function neon.index_broadcast(n) return call("vdupq_n_u32", n) end
function neon.index_xor(a, b) return call("veorq_u32", a, b) end
function neon.index_select(mask, a, b) return call("vbslq_u32", mask, a, b) end
function neon.index_or_if_positive(index, z, bit)
    return call("vorrq_u32", index, call("vandq_u32", f32("vcgt", z, neon.zero()), call("vdupq_n_u32", bit)))
end
function neon.index_store(base, offset, index) return call("vst1_u16", at(base, offset), call("vmovn_u32", index)) end

local function upper_half(halves) return call("vreinterpretq_f32_u32", call("vshll_n_u16", halves, "16")) end
local function from_half(halves) return call("vcvt_f32_f16", call("vreinterpret_f16_u16", halves)) end
function neon.load_bf16(base) return upper_half(call("vld1_u16", base)) end
function neon.load_f16(base) return from_half(call("vld1_u16", base)) end
function neon.load_i8(base) return call("$neon_load_first_i8", base, 4) end
function neon.load_partial_bf16(base, n) return upper_half(call("$neon_load_first_halves", base, n)) end
function neon.load_partial_f16(base, n) return from_half(call("$neon_load_first_halves", base, n)) end
function neon.load_partial_i8(base, n) return call("$neon_load_first_i8", base, n) end
-- fp8 in 16 bits each, moved to where half precision has fraction and exponent, whose bias is larger by 8: 1/256 of
-- each number, exactly. The sign is then one bit too low; added to itself it moves to its place.
local function from_e4m3(bytes)
    local halves = call("vshl_n_u16", bytes, 7)
    return from_half(call("vadd_u16", halves, call("vand_u16", halves, call("vdup_n_u16", "0x4000"))))
end
function neon.load_partial_e4m3(base, n) return from_e4m3(call("$neon_load_first_e4m3", base, n)) end
function neon.load_e4m3(base) return neon.load_partial_e4m3(base, 4) end
function neon.load_words(base, offset) return call("vld1q_u32", at(base, offset)) end
function neon.load_words_partial(base, offset, n) return call("$neon_load_first_words", at(base, offset), n) end
function neon.unpack_bf16(words)
    return {
        call("vreinterpretq_f32_u32", call("vshlq_n_u32", words, "16")),
        call("vreinterpretq_f32_u32", call("vandq_u32", words, "vdupq_n_u32(0xffff0000u)")),
    }
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
