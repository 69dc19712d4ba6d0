-- SIMD128 of WebAssembly: 4 lanes; a browser or runtime has at least 16 registers for them.

local expression = require "gen.isa.expression"

local at = expression.sum
local function call(name, ...) return expression.call("wasm_" .. name, ...) end
local function f32(name, ...) return call("f32x4_" .. name, ...) end

local wasm = {
    name = "wasm",
    any_alignment = true,
    lanes = 4,
    registers = 16,
    l2_bytes = 256 << 10,
    flags = { "-msimd128" },
    guard = "defined(__wasm_simd128__)",
    includes = { "<wasm_simd128.h>" },
    vector = "v128_t",
    index = "v128_t",
    mask = "v128_t",
    target = "wasm32",
    helpers = {},
}

-- Vectors of the first n elements and zeros, and stores of the first n: no instruction does either.
for _, row in ipairs { { name = "", type = "float" }, { name = "_words", type = "uint32_t" } } do
    wasm.helpers[#wasm.helpers + 1] = {
        name = "wasm_load_first" .. row.name,
        includes = wasm.includes,
        guard = wasm.guard,
        text = ([[
static inline v128_t $wasm_load_first<name>(const <type> *from, unsigned n)
{
    <type> lane[4] = { 0, 0, 0, 0 };
    for (unsigned i = 0; i < n; ++i)
        lane[i] = from[i];
    return wasm_v128_load(lane);
}]]):gsub("<(%l+)>", row),
    }
end
wasm.helpers[#wasm.helpers + 1] = {
    name = "wasm_store_first",
    includes = wasm.includes,
    guard = wasm.guard,
    text = [[
static inline void $wasm_store_first(float *to, unsigned n, v128_t v)
{
    float lane[4];
    wasm_v128_store(lane, v);
    for (unsigned i = 0; i < n; ++i)
        to[i] = lane[i];
}]],
}
wasm.helpers[#wasm.helpers + 1] = {
    name = "wasm_store_f16",
    includes = wasm.includes,
    guard = wasm.guard,
    text = [[
static inline void $wasm_store_f16(uint16_t *to, v128_t v)
{
    float lane[4];
    wasm_v128_store(lane, v);
    for (unsigned i = 0; i < 4; ++i)
        to[i] = $to_f16(lane[i]);
}]],
}

function wasm.zero() return "wasm_f32x4_const_splat(0.0f)" end
function wasm.broadcast(s) return f32("splat", s) end
function wasm.load(base, offset) return call("v128_load", at(base, offset)) end
wasm.load_unaligned, wasm.load_words = wasm.load, wasm.load
function wasm.load_partial(base, offset, n) return expression.call("$wasm_load_first", at(base, offset), n) end
function wasm.load_words_partial(base, offset, n)
    local address = at(base, offset)
    return expression.call("$wasm_load_first_words", address, n)
end
function wasm.store(base, offset, v) return call("v128_store", at(base, offset), v) end
wasm.store_unaligned = wasm.store
function wasm.store_partial(base, offset, n, v) return expression.call("$wasm_store_first", at(base, offset), n, v) end
for _, word in ipairs { "add", "sub", "mul", "div", "max" } do
    wasm[word] = function(a, b) return f32(word, a, b) end
end
function wasm.abs(v) return f32("abs", v) end
function wasm.fma(a, b, c) return f32("add", f32("mul", a, b), c) end
function wasm.reciprocal_root(v) return f32("div", f32("sqrt", v), v) end
function wasm.round_negative(v) return f32("nearest", v) end
function wasm.power_of_two(n)
    return call("i32x4_shl", call("i32x4_add", call("i32x4_trunc_sat_f32x4", n), "wasm_i32x4_const_splat(127)"), "23")
end
function wasm.less(a, b) return f32("lt", a, b) end
function wasm.select(mask, a, b) return call("v128_bitselect", a, b, mask) end
wasm.index_select = wasm.select
function wasm.any(mask) return call("v128_any_true", mask) end
function wasm.index_zero() return "wasm_i32x4_const_splat(0)" end
function wasm.index_broadcast(n) return call("i32x4_splat", expression.cast("int32_t", n)) end
function wasm.index_xor(a, b) return call("v128_xor", a, b) end
function wasm.index_and(a, b) return call("v128_and", a, b) end
function wasm.index_or_if_positive(index, z, bit)
    return call("v128_or", index, call("v128_and", f32("gt", z, wasm.zero()), call("i32x4_const_splat", bit)))
end
function wasm.index_add(a, b) return call("i32x4_add", a, b) end
function wasm.index_sub(a, b) return call("i32x4_sub", a, b) end
wasm.store_words = wasm.store
function wasm.index_store(base, offset, index)
    return call("v128_store64_lane", at(base, offset), call("u16x8_narrow_i32x4", index, index), "0")
end

local function upper_half(v) return call("i32x4_shl", v, "16") end
function wasm.load_bf16(base) return upper_half(call("u32x4_load16x4", base)) end
function wasm.load_i8(base)
    return f32(
        "convert_i32x4",
        call("i32x4_extend_low_i16x8", call("i16x8_extend_low_i8x16", call("v128_load32_zero", base)))
    )
end
-- fp8 with the sign extended, moved to where a float32 has fraction and exponent; of the copies of the sign only the
-- first one is left. The exponent's bias is larger by 120: 2^112 times that is 1/256 of each number, exactly, also of 0
-- and subnormal ones.
function wasm.load_e4m3(base)
    local bytes = call("i32x4_extend_low_i16x8", call("i16x8_extend_low_i8x16", call("v128_load32_zero", base)))
    local float = call("v128_and", call("i32x4_shl", bytes, 20), "wasm_i32x4_const_splat((int32_t) 0x87f00000u)")
    return f32("mul", float, "wasm_f32x4_const_splat(0x1p+112f)")
end
function wasm.unpack_bf16(words)
    return { upper_half(words), call("v128_and", words, "wasm_i32x4_const_splat((int32_t) 0xffff0000u)") }
end

function wasm.store_f16(base, offset, v) return expression.call("$wasm_store_f16", at(base, offset), v) end

local function nearest_integers(v) return call("i32x4_trunc_sat_f32x4", f32("nearest", v)) end
local function shorts(a, b) return call("i16x8_narrow_i32x4", nearest_integers(a), nearest_integers(b)) end
function wasm.store_i8(base, offset, v)
    local bytes = call("i8x16_narrow_i16x8", shorts(v, v), "wasm_i32x4_const_splat(0)")
    return call("v128_store32_lane", at(base, offset), bytes, "0")
end
function wasm.store_i16(base, offset, a, b) return call("v128_store", at(base, offset), shorts(a, b)) end
function wasm.pack_i16(a, b)
    local low = call("v128_and", nearest_integers(a), "wasm_i32x4_const_splat(0xffff)")
    return call("v128_or", low, call("i32x4_shl", nearest_integers(b), "16"))
end
function wasm.dot_i16(sum, a, b) return call("i32x4_add", sum, call("i32x4_dot_i16x8", a, b)) end

function wasm.store_quads(base, offset, a, b, c, d)
    return call("v128_store", at(base, offset), call("i8x16_narrow_i16x8", shorts(a, b), shorts(c, d)))
end
function wasm.pack_i8(a, b, c, d)
    local function byte(v, place)
        local moved = place > 0 and call("i32x4_shl", nearest_integers(v), tostring(8 * place)) or nearest_integers(v)
        local mask = string.format("wasm_i32x4_const_splat(0x%x)", 0xff << 8 * place)
        return place < 3 and call("v128_and", moved, mask) or moved
    end
    local function either(v, w) return call("v128_or", v, w) end
    return either(either(byte(a, 0), byte(b, 1)), either(byte(c, 2), byte(d, 3)))
end
-- Even and odd bytes by themselves, widened to 16 bits.
function wasm.dot_i8(sum, a, b)
    local even = call(
        "i32x4_dot_i16x8",
        call("v128_and", a, "wasm_i16x8_const_splat(0xff)"),
        call("i16x8_shr", call("i16x8_shl", b, "8"), "8")
    )
    local odd = call("i32x4_dot_i16x8", call("u16x8_shr", a, "8"), call("i16x8_shr", b, "8"))
    return call("i32x4_add", sum, call("i32x4_add", even, odd))
end
function wasm.high_nibbles(words) return call("u8x16_shr", words, 4) end
wasm.unpack_i4, wasm.unpack_i8 = expression.unpacked(function(words, mask, right)
    local last = right and call("u32x4_shr", words, right)
    return f32("convert_i32x4", last or call("v128_and", words, call("i32x4_splat", mask)))
end)
function wasm.float_of(index) return f32("convert_i32x4", index) end

-- Pairs of rows, then pairs of pairs.
function wasm.transpose(r)
    local function mix(a, b, ...) return call("i32x4_shuffle", a, b, ...) end
    return {
        { name = "low01", value = mix(r[1], r[2], 0, 4, 1, 5) },
        { name = "high01", value = mix(r[1], r[2], 2, 6, 3, 7) },
        { name = "low23", value = mix(r[3], r[4], 0, 4, 1, 5) },
        { name = "high23", value = mix(r[3], r[4], 2, 6, 3, 7) },
        { name = "column0", value = mix("low01", "low23", 0, 1, 4, 5) },
        { name = "column1", value = mix("low01", "low23", 2, 3, 6, 7) },
        { name = "column2", value = mix("high01", "high23", 0, 1, 4, 5) },
        { name = "column3", value = mix("high01", "high23", 2, 3, 6, 7) },
    }, { "column0", "column1", "column2", "column3" }
end

-- Halves, then the last two.
function wasm.reduce(v, word)
    return {
        { type = "v128_t", name = "two", value = f32(word, v, call("i32x4_shuffle", v, v, 2, 3, 0, 1)) },
        { type = "v128_t", name = "one", value = f32(word, "two", call("i32x4_shuffle", "two", "two", 1, 0, 3, 2)) },
    },
        f32("extract_lane", "one", "0")
end

return wasm
