-- The words of an integer gather of rows in i4, from those of rows in i8: four rows are put side by side while they are
-- packed, then each half of their bytes becomes 16 times a signed element.

local copied = require "gen.schema.copied"
local expression = require "gen.isa.expression"

-- `words`: a set's words for i8 and, of its vectors of integers, left(v, bits) and masked(v, mask); zip(a, b): the two
-- vectors of floats that have the lanes of a and b in turn, alike in each 128-bit part of a vector.
return function(words, tools)
    local mask = "0xf0f0f0f0u"
    local nibbles = copied(words)
    nibbles.columns, nibbles.vectors, nibbles.factor = 2 * words.columns, 2 * words.vectors, 16

    function nibbles.load(base, offset) return words.load(base, expression.half(offset)) end
    function nibbles.load_partial(base, offset, n)
        local bytes, place = (n + 1) // 2, expression.sum(base, expression.half(offset))
        if bytes == words.columns then return words.load(place, 0) end
        return words.load_partial(expression.cast("const int8_t *", place), 0, bytes)
    end

    function nibbles.interleave(rows)
        local steps, packed = words.interleave(rows)
        local quads = {}
        for n, value in ipairs(packed) do
            local name = "packed" .. n - 1
            steps[#steps + 1] = { name = name, value = value }
            quads[2 * n - 1], quads[2 * n] = tools.masked(tools.left(name, 4), mask), tools.masked(name, mask)
        end
        return steps, quads
    end

    -- Zipped, sums are in the order of those of i8, which has four vectors: the first four and the last four, part by
    -- part of a vector in turn.
    function nibbles.order(v)
        local steps, halves = {}, { {}, {} }
        for n = 1, 8, 2 do
            for part, value in ipairs(tools.zip(v[n], v[n + 1])) do
                local name = "zip" .. n + part - 2
                steps[#steps + 1] = { name = name, value = value }
                table.insert(halves[n < 5 and 1 or 2], name)
            end
        end
        local ordered, list = {}, {}
        for half, names in ipairs(halves) do
            local more
            more, ordered[half] = words.order(names, half == 1 and "" or "_last")
            table.move(more, 1, #more, #steps + 1, steps)
        end
        local together = 64 // words.columns -- vectors of a part
        for first = 1, 4, together do
            for _, vectors in ipairs(ordered) do
                table.move(vectors, first, first + together - 1, #list + 1, list)
            end
        end
        return steps, list
    end

    return nibbles
end
