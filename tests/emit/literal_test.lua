-- Every float32 becomes a C literal that reads back to the same bits.
local check = require "tests.support.check"
local literal = require "gen.print.literal"

local function float_of(bits) return (string.unpack("<f", string.pack("<I4", bits))) end

-- The bits of a literal: Lua reads it as a double, which is rounded once more.
local function bits_of(text)
    local digits = text:match("^(%-?%d[%d.]*e?[-+]?%d*)f$")
    if not digits or not digits:find("[.e]") then error("not a float literal: " .. text, 3) end
    return string.unpack("<I4", string.pack("<f", tonumber(digits)))
end

local function returns(bits)
    local text = literal.float(float_of(bits))
    if bits_of(text) ~= bits then error(string.format("0x%08x became %s", bits, text), 2) end
end

local test = {}

function test.all_exponents_and_both_signs()
    for exponent = 0, 254 do
        for _, fraction in ipairs { 0, 1, 2, 0x2aaaaa, 0x3fffff, 0x400000, 0x555555, 0x7ffffe, 0x7fffff } do
            for sign = 0, 1 do
                returns(sign << 31 | exponent << 23 | fraction)
            end
        end
    end
end

function test.every_subnormal_bit()
    for bit = 0, 22 do
        returns(1 << bit)
        returns((1 << bit) - 1)
        returns(0x80000000 | 1 << bit)
    end
end

-- A linear congruential generator: the same floats on every machine.
function test.random_bits()
    local state, done = 12345, 0
    while done < 50000 do
        state = state * 6364136223846793005 + 1442695040888963407
        local bits = state >> 32
        if bits >> 23 & 0xff ~= 0xff then
            returns(bits)
            done = done + 1
        end
    end
end

function test.spelling()
    for _, case in ipairs {
        { 0.0, "0.0f" },
        { -0.0, "-0.0f" },
        { 0, "0.0f" },
        { 1, "1.0f" },
        { -1.0, "-1.0f" },
        { 0.5, "0.5f" },
        { 0.1, "0.1f" },
        { 0.3, "0.3f" },
        { 1 / 3, "0.33333334f" },
        { 100.0, "1e+02f" },
        { 123.0, "123.0f" },
        { 1e-5, "1e-05f" },
        { 3.4028234663852886e38, "3.4028235e+38f" },
        { 1.17549435e-38, "1.1754944e-38f" },
        { 1e-45, "1e-45f" },
    } do
        check.equal(literal.float(case[1]), case[2])
    end
end

function test.numbers_that_need_nine_digits()
    for _, bits in ipairs { 0x3f800001, 0x46800001, 0x4b7fffff, 0x0f7ffff1, 0x5effffd7 } do
        returns(bits)
    end
    check.equal(literal.float(float_of(0x3a83126f)), "0.001f")
    check.equal(literal.float(float_of(0x3a831270)), "0.0010000002f")
    check.equal(literal.float(float_of(0x46800001)), "16384.002f")
    check.equal(literal.float(8388609.5), "8.38861e+06f")
    local longest = 0 -- from 1000 on: floats are 6.1e-5 apart, eight digits 1e-4
    for bits = 0x447a0000, 0x447a0400 do
        longest = math.max(longest, #literal.float(float_of(bits)):match("^[%d.]+"):gsub("%.", ""))
    end
    check.equal(longest, 9)
end

function test.a_double_becomes_the_nearest_float()
    check.equal(literal.float(0.1 + 1e-12), "0.1f")
    check.equal(literal.float(16777217), "16777216.0f")
    check.equal(literal.float(1e-46), "0.0f")
    check.equal(literal.round32(0.1), float_of(0x3dcccccd))
    check.equal(literal.round32(1), 1.0)
end

function test.refuses_what_no_literal_can_say()
    check.fails_with("a float literal must be finite, got inf", literal.float, math.huge)
    check.fails_with("a float literal must be finite, got -inf", literal.float, -math.huge)
    check.fails_with("a float literal must be finite, got ", literal.float, 0 / 0)
    check.fails_with("a float literal must fit float32, got 3.5e+38", literal.float, 3.5e38)
    check.fails_with("a float literal must fit float32, got -1e+300", literal.float, -1e300)
end

function test.hexadecimal()
    check.equal(literal.hex(0, 8), "0x00000000u")
    check.equal(literal.hex(0xffff, 8), "0x0000ffffu")
    check.equal(literal.hex(0x80000000, 8), "0x80000000u")
    check.equal(literal.hex(0xe6, 2), "0xe6u")
end

function test.bytes_in_lines()
    check.equal(literal.byte_lines(""), {})
    check.equal(literal.byte_lines("00ff"), { "0x00, 0xff," })
    check.equal(literal.byte_lines("0123456789abcdef"), { "0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef," })
    check.equal(
        literal.byte_lines("0123456789abcdef42"),
        { "0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,", "0x42," }
    )
end

return test
