-- Inputs of the words of instruction sets, by domain: edges, and random ones among them.
local dtype = require "gen.plan.dtype"

-- The state of the random numbers.
local seed

local function random(below)
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    return (seed >> 8) % below
end

local function bits_of(x) return (string.unpack("<I4", string.pack("<f", x))) end
local function uniform(low, high) return low + (high - low) * random(1 << 20) / (1 << 20) end
local nan = 0x7fc00000

-- The domain of words of four bytes, each from `first` to `last`.
local function bytes_of(edges, first, last)
    return {
        edges = edges,
        make = function()
            local word = 0
            for at = 0, 24, 8 do
                word = word | (random(last - first + 1) + first & 0xff) << at
            end
            return word
        end,
    }
end

-- Inputs of each domain: edges, then `make`.
local domains = {
    any = {
        edges = { 0, 0x80000000, nan, 0x7f800000, 0xff800000, 0x7f7fffff, 0xff7fffff, bits_of(1), bits_of(-1) },
        make = function() return bits_of(uniform(-4, 4) * 2.0 ^ (random(40) - 20)) end,
    },
    normal = {
        edges = { bits_of(2.0 ^ -120), 0x7f7fffff, 0x7f800000, bits_of(1) },
        make = function() return bits_of(2.0 ^ uniform(-100, 100)) end,
    },
    exponent = {
        edges = { 0, 0x80000000, nan },
        make = function() return bits_of(-random(126) - uniform(0, 0.49)) end,
    },
    ["whole exponent"] = { edges = { 0, nan, bits_of(-126) }, make = function() return bits_of(-random(127)) end },
    shifted = { edges = { nan }, make = function() return bits_of(12582912 + 127 - random(127)) end },
    byte = {
        edges = { 0, nan, bits_of(127), bits_of(-127) },
        make = function() return bits_of(random(255) - 127 + uniform(-0.49, 0.49)) end,
    },
    short = {
        edges = { 0, nan, bits_of(32767), bits_of(-32767) },
        make = function() return bits_of(random(65535) - 32767 + uniform(-0.4, 0.4)) end,
    },
    half = {
        edges = {
            0,
            0x80000000,
            nan,
            bits_of(65504),
            bits_of(2.0 ^ -24),
            bits_of(2.0 ^ -25),
            bits_of(1 + 2.0 ^ -11),
            bits_of(1 + 3 * 2.0 ^ -11),
        },
        make = function() return bits_of(uniform(-2, 2) * 2.0 ^ (random(41) - 26)) end,
    },
    bf16 = { edges = { 0, 0x8000, 0x7fc0, 0x7f80, 0xff80 }, make = function() return random(0x10000) end },
    f16 = {
        edges = { 0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff },
        make = function() return random(0x7c00) | random(2) << 15 end,
    },
    i8 = { edges = { 0, 127, -127 }, make = function() return random(255) - 127 end },
    i4 = { edges = { 0x77, 0x99, 0x79, 0x97 }, make = function() return random(256) end },
    e4m3 = { -- every finite one
        edges = { 0, 0x80, 1, 0x81, 7, 8, 0x7e, 0xfe },
        make = function() return random(0x7f) | random(2) << 7 end,
    },
    words = {
        edges = { 0, 0xffffffff, 0x80000000, 0x7fff8001 },
        make = function() return random(0x10000) | random(0x10000) << 16 end,
    },
    ["u8 words"] = bytes_of({ 0x80808080, 0xffffffff, 0x01010101, 0xff0101ff }, 1, 255),
    ["i8 words"] = bytes_of({ 0, 0x7f7f7f7f, 0x81818181, 0x817f7f81 }, -127, 127),
    ["u7 words"] = bytes_of({ 0x40404040, 0x7f7f7f7f, 0x01010101, 0x7f01017f }, 1, 127),
    ["i7 words"] = bytes_of({ 0, 0x3f3f3f3f, 0xc1c1c1c1, 0xc13f3fc1 }, -63, 63),
    ["bf16 words"] = {
        edges = { 0, 0x80008000, 0x3f803f80, 0x3f80bf80, 0x7f803f80, 0x3f807fc0 }, -- zeros, ones, infinity, NaN
        make = function()
            local function half() return bits_of(uniform(-4, 4) * 2.0 ^ (random(20) - 10)) >> 16 end
            return half() | half() << 16
        end,
    },
}

local inputs = { count = 256, elements = {} }

-- Begins the random numbers anew: every program has the same inputs.
function inputs.begin() seed = 1 end

-- Bits of inputs of a domain.
function inputs.of(domain)
    local list = {}
    for i = 1, inputs.count do
        list[i] = domains[domain].edges[i] or domains[domain].make()
    end
    for i = inputs.count, 2, -1 do -- edges meet different others
        local k = random(i) + 1
        list[i], list[k] = list[k], list[i]
    end
    return list
end

-- C types of the elements of domains that are none of floats.
for _, domain in ipairs { "words", "u8 words", "i8 words", "u7 words", "i7 words", "bf16 words" } do
    inputs.elements[domain] = "uint32_t"
end
for _, name in ipairs(dtype.loaded_names) do
    inputs.elements[name] = dtype.get(name).storage
end

return inputs
