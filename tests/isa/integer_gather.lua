-- Tests of the words of the integer gather: what they write into a program in C.
local isa = require "gen.isa.list"

-- Words of scores, by what C calls the first one, and what they make of the rows of a step: bytes of 16-bit integers,
-- 15-bit integers of rows 0 and 2, 1 and 3, or bytes, the largest one side by side.
local gather_scores = {
    bytes = {
        [127] = { words = { "0x7f017f7fu" }, of = { 127, 127, 1, 127 } },
        [255] = { words = { "0xff01ffffu" }, of = { 255, 255, 1, 255 } },
    },
    high = { words = { "0x80ff0103u", "0x7f80fe00u" }, of = { 0x300, 0x1fe, 0xff80, 0x807f } },
    even = { words = { "0x7fff0003u", "0x1234ffffu & 0x7fff7fffu" }, of = { 3, 0x7fff, 0x7fff, 0x1234 } },
}

-- The sums by the words `g` of scores times elements of four rows, for each column, in order. of_row(r): where that row
-- begins; element(r): what its element i is.
local function sums_of_rows(p, set, g, of_row, element)
    local scores = gather_scores[g.scores[1].name]
    scores = scores[g.levels] or scores
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
        local floats, multiplied = {}, {}
        for n, word in ipairs(scores.words) do
            multiplied[n] = "scores" .. n
            let(multiplied[n], g.broadcast(word))
        end
        for n, quad in ipairs(quads) do
            let("quad" .. n, quad)
            local zeros = {}
            for k = 1, #g.sums do
                zeros[k] = set.index_zero()
            end
            local sums = g.add(zeros, multiplied, "quad" .. n)
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

-- The words `g` of an integer gather: of s8 elements and, where there are, of elements in four bits.
local function gather(p, set, g)
    local from = p:input("i8", 1)
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
        bytes = { { { 0, 8, 0 }, { 0, 8, 8 }, { 0, 8, 16 }, { 0, 8, 24 } } },
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
    for number, word in ipairs(g.scores) do
        -- The word of four scores, the n-th at place(n).
        local function word_of(place)
            local parts = {}
            for n, bits in ipairs(split[g.scores[1].name][number]) do
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
        for n, value in ipairs(word.parts(q)) do
            names[n] = "part" .. n
            list[#list + 1] = string.format("const %s part%d = %s", set.index, n, value)
        end
        list[#list + 1] = set.store_words("got_words", "at / 4", g.unite(names))
        list[#list + 1] = word.store("(uint32_t *) (void *) got_bytes", "at / 16", "q1")
        p:add("    for (size_t at = 0; at < COUNT; at += %d) {", 4 * set.lanes)
        for _, line in ipairs(list) do
            p:add("        %s;", line)
        end
        p:add("        for (unsigned i = 0; i < %d; ++i)", set.lanes)
        p:add(
            '            expect_bits("integer_sums.%s", i, %s, got_words[at / 4 + i]);',
            word.name,
            word_of(function(n) return "at + " .. n * set.lanes .. " + i" end)
        )
        p:add("        for (unsigned i = 0; i < %d; ++i) {", set.lanes // 4)
        p:add "            uint32_t got_word = 0;"
        p:add "            for (unsigned n = 0; n < 4; ++n)"
        p:add "                got_word |= (uint32_t) (uint8_t) got_bytes[at / 4 + 4 * i + n] << 8 * n;"
        p:add(
            '            expect_bits("integer_sums.store_%s", i, %s, got_word);',
            word.name,
            word_of(function(n) return "at + 4 * i + " .. n end)
        )
        p:add "        }"
        p:add "    }"
    end
    p:finish()
end

-- With scores of two halves, and of a byte each.
return function(p, set)
    gather(p, set, set.integer_sums)
    gather(p, set, set.integer_sums.bytes)
end
