-- Tests of the words of the integer gather: what they write into a program in C.
local isa = require "gen.isa.list"

-- Words of scores, by what C calls them, and what they make of the rows of a step: bytes of 16-bit integers, or 15-bit
-- integers of rows 0 and 2, 1 and 3.
local gather_scores = {
    high = { words = { "0x80ff0103u", "0x7f80fe00u" }, of = { 0x300, 0x1fe, 0xff80, 0x807f } },
    even = { words = { "0x7fff0003u", "0x1234ffffu & 0x7fff7fffu" }, of = { 3, 0x7fff, 0x7fff, 0x1234 } },
}

-- The sums by the words `g` of scores times elements of four rows, for each column, in order. of_row(r): where that row
-- begins; element(r): what its element i is.
local function sums_of_rows(p, set, g, of_row, element)
    local scores = gather_scores[g.halves[1]]
    local function let(name, value) p:add("    const %s %s = %s;", set.index, name, value) end
    for _, columns in ipairs { g.columns, g.columns - 3 } do
        p:begin "integer_sums" -- a function each: boards have small stacks
        local rows = {}
        for r = 1, g.rows do
            rows[r] = "row" .. r
            let(rows[r], columns == g.columns and g.load(of_row(r), 0) or g.load_partial(of_row(r), 0, columns))
        end
        local steps, quads = g.interleave(rows)
        for _, step in ipairs(steps) do
            let(step.name, step.value)
        end
        let("first", g.broadcast(scores.words[1]))
        let("second", g.broadcast(scores.words[2]))
        local floats = {}
        for n, quad in ipairs(quads) do
            let("quad" .. n, quad)
            local zeros = {}
            for k = 1, #g.sums do
                zeros[k] = set.index_zero()
            end
            local sums = g.add(zeros, { "first", "second" }, "quad" .. n)
            p:add("    const %s float%d = %s;", set.vector, n, set.float_of(g.total(sums)))
            floats[n] = "float" .. n
        end
        local order, ordered = g.order(floats)
        p:steps("    ", order)
        for n, value in ipairs(ordered) do
            p:add("    %s;", set.store_unaligned("got", (n - 1) * set.lanes, value))
        end
        p:add("    for (unsigned i = 0; i < %d; ++i) {", columns)
        p:add "        int32_t expected = 0;"
        for r, score in ipairs(scores.of) do
            p:add("        expected += %d * %s;", score, element(r))
        end
        p:add '        expect_float("integer_sums", i, (float) expected, got[i], 0);'
        p:add "    }"
        p:finish()
    end
end

-- The integer gather of s8 elements and, where there is one, of elements in four bits.
return function(p, set)
    local g, from = set.integer_sums, p:input("i8", 1)
    local function of_row(r) return string.format("(%s) + %d", from, (r - 1) * 50) end
    sums_of_rows(p, set, g, of_row, function(r) return string.format("(%s)[i]", of_row(r)) end)
    if g.nibbles then
        local packed = p:input("i4", 1)
        local function of_packed(r) return string.format("(%s) + %d", packed, (r - 1) * 50) end
        sums_of_rows(p, set, g.nibbles, of_packed, function(r)
            local form = "%d * (int) %s"
            return form:format(g.nibbles.factor, isa.get("scalar").load_i4("(" .. of_packed(r) .. ")", "i"))
        end)
    end
    p:begin "integer_sums"
    -- Scores as integers in their halves: of each of four rows so many bits from `from` on, at `to` of a word.
    local split = {
        high = {
            { { 8, 8, 0 }, { 8, 8, 8 }, { 8, 8, 16 }, { 8, 8, 24 } },
            { { 0, 8, 0 }, { 0, 8, 8 }, { 0, 8, 16 }, { 0, 8, 24 } },
        },
        even = {
            { { 0, 15, 0 }, { 0, 0, 0 }, { 0, 15, 16 }, { 0, 0, 0 } },
            { { 0, 0, 0 }, { 0, 15, 0 }, { 0, 0, 0 }, { 0, 15, 16 } },
        },
    }
    p:add("    static float scores[COUNT];")
    p:add("    for (unsigned i = 0; i < COUNT; ++i)")
    p:add("        scores[i] = (float) ((uint32_t) halves[i] & %du);", g.levels)
    for half, part in ipairs { "first_half", "second_half" } do
        -- The word of four scores, the n-th at place(n).
        local function word_of(place)
            local parts = {}
            for n, bits in ipairs(split[g.halves[1]][half]) do
                local mask = (1 << bits[2]) - 1
                local form = "((uint32_t) scores[%s] >> %d & 0x%xu) << %d"
                parts[n] = form:format(place(n - 1), bits[1], mask, bits[3])
            end
            return table.concat(parts, " | ")
        end
        local q, list, names = {}, {}, {}
        for n = 1, 4 do
            q[n] = "q" .. n
            local score = set.load_unaligned("scores", "at + " .. (n - 1) * set.lanes)
            list[n] = string.format("const %s q%d = %s", set.index, n, g.round(score))
        end
        for n, value in ipairs(g[part](q)) do
            names[n] = "part" .. n
            list[#list + 1] = string.format("const %s part%d = %s", set.index, n, value)
        end
        list[#list + 1] = set.store_words("got_words", "at / 4", g.unite(names))
        list[#list + 1] = g["store_" .. part]("(uint32_t *) (void *) got_bytes", "at / 16", "q1")
        p:add("    for (size_t at = 0; at < COUNT; at += %d) {", 4 * set.lanes)
        for _, line in ipairs(list) do
            p:add("        %s;", line)
        end
        p:add("        for (unsigned i = 0; i < %d; ++i)", set.lanes)
        p:add(
            '            expect_bits("integer_sums.%s", i, %s, got_words[at / 4 + i]);',
            part,
            word_of(function(n) return "at + " .. n * set.lanes .. " + i" end)
        )
        p:add("        for (unsigned i = 0; i < %d; ++i) {", set.lanes // 4)
        p:add "            uint32_t got_word = 0;"
        p:add "            for (unsigned n = 0; n < 4; ++n)"
        p:add "                got_word |= (uint32_t) (uint8_t) got_bytes[at / 4 + 4 * i + n] << 8 * n;"
        p:add(
            '            expect_bits("integer_sums.store_%s", i, %s, got_word);',
            part,
            word_of(function(n) return "at + 4 * i + " .. n end)
        )
        p:add "        }"
        p:add "    }"
    end
    p:finish()
end
