-- Portable C99: one lane, no intrinsics, no libm.

local expression = require "gen.isa.expression"

local level, operand, binary, bitwise = expression.level, expression.operand, expression.binary, expression.bitwise
local call, cast, conditional = expression.call, expression.cast, expression.conditional

local function unpack_bf16(words)
    return {
        call("$from_bf16", cast("uint16_t", words)),
        call("$from_bf16", cast("uint16_t", binary(words, ">>", "16"))),
    }
end

local function pack_bf16(a, b)
    return bitwise(call("$to_bf16", a), "|", binary(call("$to_bf16", b), "<<", "16"))
end

local unpack_i4, unpack_i8 = expression.unpacked(function(words, mask, right)
    return cast("float", right and binary(words, ">>", right) or bitwise(words, "&", mask .. "u"))
end)

local function at(base, offset) return expression.index(base, offset) end
local function assign(base, offset, value) return at(base, offset) .. " = " .. value end

return {
    name = "scalar",
    lanes = 1,
    registers = 16,
    l2_bytes = 256 << 10,
    flags = {},
    includes = {},
    vector = "float",
    index = "uint32_t",
    mask = "int",

    zero = function() return "0.0f" end,
    broadcast = function(s) return s end,
    load = at,
    load_unaligned = at,
    load_bf16 = function(base) return call("$from_bf16", at(base, 0)) end,
    load_f16 = function(base) return call("$from_f16", at(base, 0)) end,
    load_i8 = function(base) return cast("float", at(base, 0)) end,
    load_e4m3 = function(base) return call("$from_e4m3", at(base, 0)) end,
    load_i4 = function(base, element) return call("$from_i4", base, element or 0) end,
    load_words = at,
    unpack_bf16 = unpack_bf16,
    high_nibbles = function(words) return bitwise(binary(words, ">>", 4), "&", "0x0f0f0f0fu") end,
    unpack_i4 = unpack_i4,
    unpack_i8 = unpack_i8,
    dot_bf16 = function(sum, a, b)
        local first, second = unpack_bf16(a), unpack_bf16(b)
        return binary(
            binary(sum, "+", binary(first[1], "*", second[1])),
            "+",
            binary(first[2], "*", second[2])
        )
    end,
    store_bf16 = function(base, offset, a, b) return assign(base, offset, pack_bf16(a, b)) end,
    pack_bf16 = pack_bf16,
    dot_i16 = function(sum, a, b) return call("$add_pairs", sum, a, b) end,
    float_of = function(index) return "(float) " .. cast("int32_t", index) end,
    pack_i16 = function(a, b) return call("$pair", a, b) end,
    dot_i8 = function(sum, a, b) return call("$add_quads", sum, a, b) end,
    pack_i8 = function(a, b, c, d) return call("$quad", a, b, c, d) end,
    store_quads = function(base, offset, a, b, c, d) return assign(base, offset, call("$quad", a, b, c, d)) end,
    store_words = assign,
    store_i16 = function(base, offset, a, b) return assign(base, offset, call("$pair", a, b)) end,
    store_f16 = function(base, offset, v) return assign(base, offset, call("$to_f16", v)) end,
    store_i8 = function(base, offset, v) return assign(base, offset, call("$to_i8", v)) end,
    store = assign,
    store_unaligned = assign,
    add = function(a, b) return binary(a, "+", b) end,
    sub = function(a, b) return binary(a, "-", b) end,
    mul = function(a, b) return binary(a, "*", b) end,
    div = function(a, b) return binary(a, "/", b) end,
    max = function(a, b) return conditional(binary(a, ">", b), a, b) end,
    abs = function(v) return conditional(binary(v, "<", "0.0f"), "-" .. operand(v, level.primary), v) end,
    fma = function(a, b, c) return binary(binary(a, "*", b), "+", c) end,
    less = function(a, b) return binary(a, "<", b) end,
    select = conditional,
    any = function(mask) return mask end,
    index_select = conditional,
    index_broadcast = function(n) return cast("uint32_t", n) end,
    index_add = function(a, b) return binary(a, "+", b) end,
    index_sub = function(a, b) return binary(a, "-", b) end,
    index_xor = function(a, b) return bitwise(a, "^", b) end,
    index_and = function(a, b) return bitwise(a, "&", b) end,
    index_load = at,
    index_has = function(index, bit) return binary(bitwise(index, "&", bit .. "u"), "!=", "0") end,
    index_zero = function() return "0" end,
    index_or_if_positive = function(index, z, bit)
        return bitwise(index, "|", conditional(binary(z, ">", "0.0f"), bit .. "u", "0u"))
    end,
    index_store = function(base, offset, index) return assign(base, offset, cast("uint16_t", index)) end,
    transpose = function(rows) return {}, rows end,
    reduce = function(v) return {}, v end,
    reciprocal_root = function(v) return call("$reciprocal_root", v) end,
    round_negative = function(v) return call("$round_negative", v) end,
    power_of_two = function(n) return call("$power_of_two", n) end,
}
