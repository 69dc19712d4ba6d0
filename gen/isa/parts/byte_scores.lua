-- The words of an integer gather whose scores have two bytes or one, which products of bytes take.
local copied = require "gen.schema.copied"

local byte_scores = {}

-- Adds to a set's words `bytes`: those of scores in one byte, integers up to `levels`. `v`: see byte_scores.two; left,
-- dot and store.
function byte_scores.one(words, levels, v)
    local left, bytes = v.left, copied(words)
    bytes.vectors, bytes.levels, bytes.sums = 4, levels, { "sum" }
    bytes.scores = {
        {
            name = "bytes",
            parts = function(q) return { q[1], left(q[2], 8), left(q[3], 16), left(q[4], 24) } end,
            store = v.store,
        },
    }
    function bytes.add(sums, scores, rows) return { v.dot(sums[1], scores[1], rows) } end
    function bytes.total(sums) return sums[1] end
    words.bytes = bytes
end

-- Adds to a set's words for i8 those of scores in two bytes, and `bytes`, as byte_scores.one has it. `v`: of the set's
-- vectors of integers left(v, bits), right(v, bits), masked(v, mask), add(a, b), dot(sum, scores, rows): their product,
-- added, and store(base, offset, q): the lowest bytes of integers; `masks`: which have nothing above these.
function byte_scores.two(words, v)
    local left, right, masked, store = v.left, v.right, v.masked, v.store
    -- The upper and the lower byte of four 16-bit integers, each at its place in one word, the first one's lowest; or
    -- of integers in a row.
    local high = {
        name = "high",
        parts = function(q)
            local function byte(n) return masked(q[n], "0xff00") end
            return { right(q[1], 8), byte(2), left(byte(3), 8), left(byte(4), 16) }
        end,
        store = function(base, offset, q) return store(base, offset, right(q, 8)) end,
    }
    local low = {
        name = "low",
        parts = function(q)
            local function byte(n) return masked(q[n], "0xff") end
            return { byte(1), left(byte(2), 8), left(byte(3), 16), left(q[4], 24) }
        end,
        store = function(base, offset, q) return store(base, offset, v.masks and masked(q, "0xff") or q) end,
    }
    words.vectors, words.levels, words.sums, words.scores = 8, 65535, { "high", "low" }, { high, low }
    function words.add(sums, scores, rows)
        return { v.dot(sums[1], scores[1], rows), v.dot(sums[2], scores[2], rows) }
    end
    function words.total(sums) return v.add(left(sums[1], 8), sums[2]) end -- 256 high + low
    byte_scores.one(words, 255, v)
end

return byte_scores
