-- Sums rows of i8 as integers on vectors of 256 bits, by products of 16-bit integers: scores have 15 bits. Or by
-- products of bytes: scores have 7.

local byte_scores = require "gen.isa.parts.byte_scores"
local expression = require "gen.isa.expression"
local interleave = require "gen.isa.parts.x86_quads"

local at = expression.sum
local function call(name, ...) return expression.call("_mm256_" .. name, ...) end
local function left(v, bits) return call("slli_epi32", v, tostring(bits)) end

local helpers = {
    {
        name = "avx2_load_first",
        text = [[
/* The first n bytes, at most 8, and zeros. */
static inline long long $avx2_eight(const int8_t *from, unsigned n)
{
    uint64_t word = 0;
    for (unsigned k = 0; k < n && k < 8; ++k)
        word |= (uint64_t) (uint8_t) from[k] << 8 * k;
    return (long long) word;
}

/* The first n bytes, below 32, and zeros. */
static inline __m256i $avx2_load_first(const int8_t *from, unsigned n)
{
    const long long second = n > 8 ? $avx2_eight(from + 8, n - 8) : 0;
    const long long third = n > 16 ? $avx2_eight(from + 16, n - 16) : 0;
    const long long fourth = n > 24 ? $avx2_eight(from + 24, n - 24) : 0;
    return _mm256_set_epi64x(fourth, third, second, $avx2_eight(from, n));
}]],
    },
    {
        name = "avx2_pairs",
        text = [[
/* Of two times four integers below 2^15, scores of rows 0 to 3: those of rows 0 and 2 in the two lower words, of 1 and
   3 in the upper ones. */
static inline __m128i $avx2_pairs(__m256i integers)
{
    const __m256i pairs = _mm256_or_si256(integers, _mm256_srli_si256(integers, 6));
    return _mm_unpacklo_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}]],
    },
    {
        name = "avx2_store_even",
        text = [[
/* Stores those of rows 0 and 2. */
static inline void $avx2_store_even(uint32_t *to, __m256i integers)
{
    _mm_storel_epi64((__m128i *) (void *) to, $avx2_pairs(integers));
}]],
    },
    {
        name = "avx2_store_odd",
        text = [[
/* Stores those of rows 1 and 3. */
static inline void $avx2_store_odd(uint32_t *to, __m256i integers)
{
    const __m128i pairs = $avx2_pairs(integers);
    _mm_storel_epi64((__m128i *) (void *) to, _mm_unpackhi_epi64(pairs, pairs));
}]],
    },
}

-- Scores of up to 127 times bytes: two such products stay within 16 bits, 2 * 127 * 128 = 32512.
local function dot_bytes(sum, scores, rows)
    local pairs_of_rows = call("maddubs_epi16", scores, rows)
    return call("add_epi32", sum, call("madd_epi16", pairs_of_rows, call("set1_epi16", "1")))
end

local function store_bytes(base, offset, q)
    local halves = expression.call("_mm_packs_epi32", call("castsi256_si128", q), call("extracti128_si256", q, "1"))
    return expression.call(
        "_mm_storel_epi64",
        expression.cast("__m128i *", expression.cast("void *", at(base, offset))),
        expression.call("_mm_packs_epi16", halves, "_mm_setzero_si128()")
    )
end

-- The words, and the helpers that they call, of the instruction set `avx2`. The bytes of rows 0 and 2 become one vector
-- of 16-bit integers, those of rows 1 and 3 another: a word of scores has those of either.
return function(avx2)
    for _, row in ipairs(helpers) do
        row.includes, row.guard = avx2.includes, avx2.guard
    end

    local words = {
        rows = 4,
        columns = 32,
        vectors = 4,
        load = avx2.load_words,
        load_partial = function(base, offset, n)
            return expression.call("$avx2_load_first", at(base, offset), n)
        end,
        broadcast = function(word) return call("set1_epi32", expression.cast("int", word)) end,
        levels = 32767,
        scores = {
            {
                name = "even",
                parts = function(q) return { q[1], left(q[3], 16) } end,
                store = function(base, offset, q) return expression.call("$avx2_store_even", at(base, offset), q) end,
            },
            {
                name = "odd",
                parts = function(q) return { q[2], left(q[4], 16) } end,
                store = function(base, offset, q) return expression.call("$avx2_store_odd", at(base, offset), q) end,
            },
        },
        sums = { "sum" },
        add = function(sums, scores, rows)
            local even = call("maddubs_epi16", call("set1_epi16", "1"), rows) -- a byte and no other: it cannot saturate
            local products = call(
                "add_epi32",
                call("madd_epi16", even, scores[1]),
                call("madd_epi16", call("srai_epi16", rows, "8"), scores[2])
            )
            return { call("add_epi32", sums[1], products) }
        end,
        total = function(sums) return sums[1] end,
        interleave = interleave(call),
        order = function(v)
            local function halves(a, b, which) return call("permute2f128_ps", a, b, which) end
            return {},
                {
                    halves(v[1], v[2], "0x20"),
                    halves(v[3], v[4], "0x20"),
                    halves(v[1], v[2], "0x31"),
                    halves(v[3], v[4], "0x31"),
                }
        end,
        round = function(v) return call("cvtps_epi32", v) end,
        unite = function(words)
            local all = words[1]
            for n = 2, #words do
                all = call("or_si256", all, words[n])
            end
            return all
        end,
    }
    byte_scores.one(words, 127, { left = left, dot = dot_bytes, store = store_bytes })
    return words, helpers
end
