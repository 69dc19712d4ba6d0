-- The words of an integer gather whose scores have one byte each, from those of an instruction set for scores of two
-- halves: one product of bytes instead of two products.
local copied = require "gen.schema.copied"

-- `words`: a set's words for i8; levels: the largest integer that a score becomes; dot(sum, scores, rows): their
-- product, added; left(v, bits), of its vectors of integers; store(base, offset, q): the lowest bytes of integers.
return function(words, levels, dot, left, store)
    local bytes = copied(words)
    bytes.vectors, bytes.levels, bytes.sums = 4, levels, { "sum" }
    bytes.scores = {
        {
            name = "bytes",
            parts = function(q) return { q[1], left(q[2], 8), left(q[3], 16), left(q[4], 24) } end,
            store = store,
        },
    }
    function bytes.add(sums, scores, rows) return { dot(sums[1], scores[1], rows) } end
    function bytes.total(sums) return sums[1] end
    return bytes
end
