-- Tests of words that reduce, transpose or multiply packed elements: what each writes into a program in C.
local isa = require "gen.isa.list"

local scalar = isa.get "scalar"
local words = {}

function words.any(p, set)
    local a, b = p:input("any", 4), p:input("any", 5)
    p:add("    for (size_t at = 0; at < COUNT; at += %d) {", set.lanes)
    p:add("        const %s mask = %s;", set.mask, set.less(set.load_unaligned(a, "at"), set.load_unaligned(b, "at")))
    p:add("        const %s none = %s;", set.mask, set.less(set.load_unaligned(a, "at"), set.load_unaligned(a, "at")))
    p:add "        unsigned expected = 0;"
    p:add("        for (unsigned i = 0; i < %d; ++i)", set.lanes)
    p:add("            expected |= (%s)[at + i] < (%s)[at + i];", a, b)
    p:add('        expect_bits("any", (unsigned) at, expected, (%s) ? 1 : 0);', set.any "mask")
    p:add('        expect_bits("any", (unsigned) at, 0, (%s) ? 1 : 0);', set.any "none")
    p:add "    }"
end

-- The word `name` whose result is a list of `parts` vectors.
local function unpacked(name, parts)
    return function(p, set)
        local from = p:input("words", 1)
        for part = 1, parts do
            p:vectors(
                string.format("const %s words = %s", set.index, set.load_words(from, "at")),
                set.store_unaligned("got", "at", set[name]("words")[part])
            )
            p:lanes(string.format('expect_float("%s", i, %s, got[i], 0)', name, scalar[name](from .. "[i]")[part]))
        end
    end
end

words.unpack_bf16 = unpacked("unpack_bf16", 2)
words.unpack_i4 = unpacked("unpack_i4", 8)
words.unpack_i8 = unpacked("unpack_i8", 4)

-- What the dot product `name` makes of words of the domains, and dot_i8 less `offset` times the sum of b's bytes.
local function dot_words(p, set, name, a_domain, b_domain, offset)
    local sum, a, b = p:input("words", 1), p:input(a_domain, 2), p:input(b_domain, 1)
    local value = set[name](set.load_words(sum, "at"), set.load_words(a, "at"), set.load_words(b, "at"))
    p:vectors(set.store_words("got_words", "at", value))
    local from = string.format("%s[i] - %du * %s", sum, offset, scalar.dot_i8("0u", "0x01010101u", b .. "[i]"))
    local expected = scalar.dot_i8("(" .. from .. ")", a .. "[i]", b .. "[i]")
    p:lanes(string.format('expect_bits("%s", i, %s, got_words[i])', name, expected))
end

function words.dot_i7(p, set) dot_words(p, set, "dot_i7", "words", "i7 words", 0) end
function words.dot_two_i7(p, set)
    local sum, loaded, elements = p:input("words", 1), {}, {}
    for pair = 1, 2 do
        for _, domain in ipairs { "u7 words", "i7 words" } do
            local from = p:input(domain, pair)
            loaded[#loaded + 1], elements[#elements + 1] = set.load_words(from, "at"), from .. "[i]"
        end
    end
    p:vectors(set.store_words("got_words", "at", set.dot_two_i7(set.load_words(sum, "at"), table.unpack(loaded))))
    local first = scalar.dot_i8(sum .. "[i]", elements[1], elements[2])
    local expected = scalar.dot_i8(first, elements[3], elements[4])
    p:lanes(string.format('expect_bits("dot_two_i7", i, %s, got_words[i])', expected))
end
function words.dot_halves(p, set)
    local sum, a, b = p:input("words", 1), p:input("u7 words", 1), p:input("i7 words", 1)
    local dot = set.dot_halves(set.load_words(sum, "at"), set.load_words(a, "at"), set.load_words(b, "at"))
    p:vectors(set.store_words("got_words", "at", dot))
    local halves = {}
    for n, form in ipairs { "(%s[i] & 0xffff)", "(%s[i] >> 16)" } do
        halves[n] = scalar.dot_i8(form:format(sum), form:format(a), form:format(b))
    end
    p:lanes(string.format('expect_bits("dot_halves", i, (%s & 0xffff) | %s << 16, got_words[i])', halves[1], halves[2]))
end
function words.add_halves(p, set)
    local sums = p:input("words", 1)
    p:vectors(set.store_words("got_words", "at", set.add_halves(set.load_words(sums, "at"))))
    local total = string.format("(uint32_t) ((int16_t) %s[i] + (int16_t) (%s[i] >> 16))", sums, sums)
    p:lanes(string.format('expect_bits("add_halves", i, %s, got_words[i])', total))
end
function words.dot_s8(p, set) dot_words(p, set, "dot_s8", "u8 words", "i8 words", 128) end
function words.dot_b8(p, set) dot_words(p, set, "dot_b8", "words", "i8 words", 128) end

function words.dot_bf16(p, set)
    local sum, a, b = p:input("any", 1), p:input("bf16 words", 1), p:input("bf16 words", 2)
    local value = set.dot_bf16(set.load_unaligned(sum, "at"), set.load_words(a, "at"), set.load_words(b, "at"))
    p:vectors(set.store_unaligned("got", "at", value))
    p:lanes(string.format('expect_dot("dot_bf16", i, (%s)[i], %s[i], %s[i], got[i])', sum, a, b))
end

function words.entry(p, set)
    local from, list = p:input("shifted", 1), {}
    for k = 1, 32 do
        list[k] = k .. ".0f"
    end
    p:vectors(set.store_unaligned("got", "at", set.entry(list, set.load_unaligned(from, "at"))))
    p:lanes('expect_float("entry", i, (float) (in_shifted_1[i].bits % 32 + 1), got[i], 0)')
end

function words.min(p, set)
    local a, b = p:input("any", 1), p:input("any", 2)
    p:vectors(set.store_unaligned("got", "at", set.min(set.load_unaligned(a, "at"), set.load_unaligned(b, "at"))))
    p:lanes(
        string.format("const float a = (%s)[i], b = (%s)[i]", a, b),
        "if (a != a) continue",
        'expect_float("min", i, a < b ? a : b, got[i], 0)'
    )
end

-- The names of as many vectors of `from` as there are lanes.
local function rows_of(p, set, from)
    local rows = {}
    for r = 1, set.lanes do
        rows[r] = "row" .. r
        p:add("    const %s row%d = %s;", set.vector, r, set.load_unaligned(from, (r - 1) * set.lanes))
    end
    return rows
end

function words.transpose(p, set)
    local n, from = set.lanes, p:input("any", 1)
    local rows = rows_of(p, set, from)
    local steps, columns = set.transpose(rows)
    p:steps("    ", steps)
    for c, column in ipairs(columns) do
        p:add("    %s;", set.store_unaligned("got", (c - 1) * n, column))
    end
    p:add("    for (unsigned i = 0; i < %d; ++i)", n * n)
    p:add('        expect_float("transpose", i, (%s)[i %% %d * %d + i / %d], got[i], 0);', from, n, n, n)
end

-- Makes `rounded` of the floats `from`: sums of them are exact in any order.
local function whole_numbers(from)
    local text = "    for (unsigned i = 0; i < COUNT; ++i)\n \z
        rounded[i] = (%s)[i] == (%s)[i] ? (float) (int32_t) (%s)[i] : 7.0f;"
    return text:format(from, from, from)
end

function words.lane_sums(p, set)
    local n, from = set.lanes, p:input("short", 2)
    local steps, sums = set.lane_sums(rows_of(p, set, "rounded"))
    p:steps("    ", steps)
    p:add("    %s;", set.store_unaligned("got", 0, sums))
    p:add("    for (unsigned i = 0; i < %d; ++i) {", n)
    p:add "        float expected = 0.0f;"
    p:add("        for (unsigned lane = 0; lane < %d; ++lane)", n)
    p:add("            expected += rounded[i * %d + lane];", n)
    p:add '        expect_float("lane_sums", i, expected, got[i], 0);'
    p:add "    }"
    return whole_numbers(from)
end

function words.reduce(p, set)
    local from = p:input("short", 2)
    for _, kind in ipairs { "max", "add" } do
        p:add("    for (size_t at = 0; at < COUNT; at += %d) {", set.lanes)
        p:add("        const %s value = %s;", set.vector, set.load_unaligned("rounded", "at"))
        local steps, result = set.reduce("value", kind)
        p:steps("        ", steps)
        p:add("        const float found = %s;", result)
        p:add "        float expected = rounded[at];"
        p:add("        for (unsigned i = 1; i < %d; ++i)", set.lanes)
        p:add(
            "            expected = %s;",
            kind == "max" and scalar.max("expected", "rounded[at + i]") or scalar.add("expected", "rounded[at + i]")
        )
        p:add('        expect_float("reduce %s", (unsigned) at, expected, found, 0);', kind)
        p:add "    }"
    end
    return whole_numbers(from)
end

function words.reduce_magnitudes(p, set)
    local from = p:input("any", 1)
    p:add("    for (size_t at = 0; at < COUNT; at += %d) {", set.lanes)
    p:add(
        "        const %s value = %s;",
        set.index,
        set.max_magnitude(set.index_zero(), set.load_unaligned(from, "at"))
    )
    local steps, result = set.reduce_magnitudes "value"
    p:steps("        ", steps)
    p:add("        const number found = { %s };", result)
    p:add "        uint32_t expected = 0;"
    p:add("        for (unsigned i = 0; i < %d; ++i) {", set.lanes)
    p:add("            const number one = { (%s)[at + i] };", from)
    p:add "            const uint32_t magnitude = one.bits & 0x7fffffffu;"
    p:add "            expected = magnitude > expected ? magnitude : expected;"
    p:add "        }"
    p:add '        expect_bits("reduce_magnitudes", (unsigned) at, expected, found.bits);'
    p:add "    }"
end

-- Several vectors side by side: each is 16 inputs on from the one before.
local function reduced_together(p, set, word, from, vector, store, expected)
    for _, n in ipairs { 4, 8 } do
        p:add("    for (size_t at = 0; at < COUNT; at += %d) {", n * set.lanes)
        local list = {}
        for k = 1, n do
            list[k] = "value" .. k
            p:add("        const %s value%d = %s;", set.index, k, vector("at + " .. (k - 1) * set.lanes))
        end
        local steps, result = set[word](list)
        for _, step in ipairs(steps) do
            p:add("        const %s %s = %s;", set.index, step.name, step.value)
        end
        p:add("        %s;", store(n, result))
        p:add("        for (unsigned k = 0; k < %d; ++k) {", n)
        p:add "            uint32_t expected = 0;"
        p:add("            for (unsigned i = 0; i < %d; ++i) {", set.lanes)
        p:add("                const uint32_t one = %s[at + k * %d + i];", from, set.lanes)
        p:add("                expected = %s;", expected)
        p:add "            }"
        p:add('            expect_bits("%s %d", (unsigned) at + k, expected, got_words[at + k]);', word, n)
        p:add "        }"
        p:add "    }"
    end
end

function words.as_floats(p, set)
    p:input("any", 1)
    local from = "(const float *) (const void *) in_any_1"
    local magnitudes = set.max_magnitude(set.index_zero(), set.load_unaligned(from, "at"))
    p:vectors(set.store_unaligned("got", "at", set.as_floats(magnitudes)))
    p:lanes(string.format('expect_float("as_floats", i, %s, got[i], 0)', scalar.abs "in_any_1[i].value"))
end

function words.largest_of(p, set)
    p:input("any", 1)
    local from = "((const uint32_t *) (const void *) in_any_1)"
    reduced_together(p, set, "largest_of", from, function(at)
        local v = string.format("(const float *) (const void *) in_any_1 + (%s)", at)
        return set.max_magnitude(set.index_zero(), set.load_unaligned(v, 0))
    end, function(n, result)
        return set.store_partial("(float *) (void *) got_words", "at", n, result)
    end, "(one & 0x7fffffffu) > expected ? one & 0x7fffffffu : expected")
end

function words.sums_of(p, set)
    local from = p:input("words", 1)
    reduced_together(
        p,
        set,
        "sums_of",
        from,
        function(at) return set.load_words(from, at) end,
        function(n, result) return set.store_words_partial("got_words", "at", n, result) end,
        "expected + one"
    )
end

return words
