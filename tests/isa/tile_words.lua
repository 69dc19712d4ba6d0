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

-- The word for bytes that are alike in a and b; C's type of them.
local function alike(name, domain, type)
    return function(p, set)
        local a, b = p:input(domain, 1), p:input(domain, 2)
        p:add "    uint32_t a[256], b[272];"
        p:add("    for (unsigned i = 0; i < 272; ++i)")
        p:add("        a[i %% 256] = %s[i %% 256], b[i] = %s[i %% 256];", a, b)
        local lines = [[
            union { uint32_t bits; } sum = { 0 };
            for (unsigned k = 0; k < 64; ++k)
                sum.bits += (uint32_t) ((TYPE) (a[16 * row + k / 4] >> 8 * (k % 4))
                    * (TYPE) (b[17 * (k / 4) + n] >> 8 * (k % 4)));]]
        add(p, name, product(set, name), (lines:gsub("TYPE", type)))
    end
end
words.tile_dot_signed = alike("tile_dot_signed", "i8 words", "int8_t")
words.tile_dot_unsigned = alike("tile_dot_unsigned", "u8 words", "uint8_t")

-- The word `name` of as many vectors of words as `expected` has arrays, beside that C expression.
local function of_words(name, expected)
    return function(p, set)
        local arrays, vectors = {}, {}
        for letter in expected:gmatch "%$(%l)" do
            if not arrays[letter] then
                vectors[#vectors + 1] = letter
                arrays[letter] = p:input("words", #vectors)
            end
        end
        for i, letter in ipairs(vectors) do
            vectors[i] = set.load_words(arrays[letter], "at")
        end
        p:add("    for (unsigned at = 0; at + %d <= COUNT; at += %d)", set.lanes, set.lanes)
        p:add("        %s;", set.store_words("got_words", "at", set[name](table.unpack(vectors))))
        p:add("    for (unsigned i = 0; i + %d <= COUNT; ++i)", set.lanes)
        local value = expected:gsub("%$(%l)", function(letter) return arrays[letter] .. "[i]" end)
        p:add('        expect_bits("%s", i, %s, got_words[i]);', name, value)
    end
end
words.upper_bytes = of_words("upper_bytes", "($a >> 8 & 0x00ff00ffu) | ($b & 0xff00ff00u)")
words.lower_bytes = of_words("lower_bytes", "($a & 0x00ff00ffu) | ($b << 8 & 0xff00ff00u)")
words.sum_of_bytes = of_words("sum_of_bytes", "65536u * $a + 256u * $b + $c")

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
