-- Tests of the words of tiles (gen/isa/parts/tiles.lua): what they multiply, beside loops in portable C.
local scalar = require("gen.isa.list").get "scalar"

local words = {}

-- The lines that multiply tiles of words a and b, the sums starting from `sums`, into got_words.
local function product(set, dot, sums)
    return {
        set.tile_configure(),
        sums and set.tile_load(0, sums, 0, 64) or set.tile_zero(0),
        set.tile_load(1, "a", 0, 64),
        set.tile_load(2, "b", 0, 68),
        set[dot](0, 1, 2),
        set.tile_store(0, "got_words", 0, 64),
        set.tile_release(),
    }
end

local function add(p, name, lines, expected)
    for _, line in ipairs(lines) do
        p:add("    %s;", line)
    end
    p:add "    for (unsigned row = 0; row < 16; ++row)"
    p:add "        for (unsigned n = 0; n < 16; ++n) {"
    p:add(expected)
    p:add('            expect_bits("%s", 16 * row + n, sum.bits, got_words[16 * row + n]);', name)
    p:add "        }"
end

function words.tile_configure(p, set)
    for _, name in ipairs { "release", "zero", "load", "store" } do
        p.tested["tile_" .. name] = true
    end
    p:add("    %s;", set.tile_configure())
    p:add("    %s;", set.tile_release())
end

-- The word for bytes, those of a signed or those of b; rows of b are 17 words apart.
local function bytes(name, a_domain, b_domain, swaps)
    return function(p, set)
        local sums, a, b = p:input("words", 1), p:input(a_domain, 1), p:input(b_domain, 2)
        p:add "    uint32_t sums[256], a[256], b[272];"
        p:add "    for (unsigned i = 0; i < 272; ++i)"
        p:add("        a[i %% 256] = %s[i %% 256], b[i] = %s[i %% 256], sums[i %% 256] = %s[i %% 256];", a, b, sums)
        local unsigned, signed = "b[17 * k + n]", "a[16 * row + k]"
        if swaps then
            unsigned, signed = signed, unsigned
        end
        local lines = [[
            union { uint32_t bits; } sum = { sums[16 * row + n] };
            for (unsigned k = 0; k < 16; ++k)
                sum.bits = %s;]]
        add(p, name, product(set, name, "sums"), lines:format(scalar.dot_i8("sum.bits", unsigned, signed)))
    end
end
words.tile_dot_i8 = bytes("tile_dot_i8", "i8 words", "u8 words")
words.tile_dot_u8 = bytes("tile_dot_u8", "u8 words", "i8 words", true)

-- Whole numbers whose sums are exact in any order.
function words.tile_dot_bf16(p, set)
    p:add "    uint32_t a[256], b[272];"
    p:add "    for (unsigned i = 0; i < 272; ++i) {"
    p:add "        a[i % 256] = $to_bf16((float) (i % 15) - 7.0f) | $to_bf16((float) (i % 13)) << 16;"
    p:add "        b[i] = $to_bf16((float) (i % 11) - 5.0f) | $to_bf16((float) (i % 7) - 9.0f) << 16;"
    p:add "    }"
    add(
        p,
        "tile_dot_bf16",
        product(set, "tile_dot_bf16"),
        [[
        number sum = { 0 };
        for (unsigned k = 0; k < 16; ++k)
            for (unsigned part = 0; part < 2; ++part)
                sum.value += part_of_pair(a[16 * row + k], part) * part_of_pair(b[17 * k + n], part);]]
    )
end

return words
