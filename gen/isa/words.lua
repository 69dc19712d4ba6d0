-- The contract of the words that templates are written in: what an instruction set must have to say them.
--
-- A word takes and gives C expressions of any form; what it prints has parentheses where its own operators need them.
--   name      field of the instruction set (gen/isa/*.lua), a function
--   takes     its arguments, one word each:
--               vector    floats, as many as lanes          index  as many unsigned 32-bit integers
--               mask      of a comparison                   float  one float
--               number    one integer, of C                 n, bit  an integer of Lua: a count of lanes, a single bit
--               address   two arguments: base, offset; offset 0 is `base` itself
--               base      one argument: where elements of a table begin
--               tile      the number of one of eight tiles, 16 rows of 16 words (gen/isa/parts/tiles.lua)
--               rows, kind  see the word
--   gives     what its result is; "statement": nothing
--   tier      the kernels that need it, see `tiers`; nil: an instruction set may lack it, and templates ask first
--   partial   only sets of several lanes need it
--   nan       what it makes of NaN, where that is not NaN: "b", "any"
--   domain    of its arguments, where it is not all floats: see tests/isa/
--   ulps      how far from the exact result it may be, nil: as near as IEEE 754 says
--   doc       its meaning
local dtype = require "gen.plan.dtype"
local misuse = require "gen.schema.misuse"

local words = {}

-- What kernels need, each with what the ones before have. A word `or`s another: one of both is enough.
words.tiers = {
    few = "layers for few tokens",
    many = "layers for many tokens",
    masks = "multi-probe hashes, activations and attention",
    cache = "caches of transformers",
    integer = "projections in integers",
    pairs = "projections in i16",
    quads = "projections in i8",
    groups = "weights in groups",
    group_quads = "weights in groups beside inputs in i8",
    bf16_products = "products of inputs in bf16",
    training = "training",
}

words.list = {
    { name = "zero", takes = "", gives = "vector", tier = "few", doc = "0 in every lane" },
    { name = "broadcast", takes = "float", gives = "vector", tier = "few", doc = "the float in every lane" },
    { name = "load", takes = "address", gives = "vector", tier = "few", doc = "floats, aligned to a vector" },
    { name = "load_unaligned", takes = "address", gives = "vector", tier = "few", doc = "floats at any alignment" },
    {
        name = "load_partial",
        takes = "address n",
        gives = "vector",
        tier = "few",
        partial = true,
        doc = "n floats and zeros, reading not a byte more",
    },
    { name = "store", takes = "address vector", gives = "statement", tier = "few", doc = "aligned to a vector" },
    { name = "store_unaligned", takes = "address vector", gives = "statement", tier = "few", doc = "at any alignment" },
    {
        name = "store_partial",
        takes = "address n vector",
        gives = "statement",
        tier = "few",
        partial = true,
        doc = "the first n lanes, writing not a byte more",
    },
    { name = "add", takes = "vector vector", gives = "vector", tier = "few", doc = "a + b" },
    { name = "sub", takes = "vector vector", gives = "vector", tier = "few", doc = "a - b" },
    { name = "mul", takes = "vector vector", gives = "vector", tier = "few", doc = "a b" },
    { name = "div", takes = "vector vector", gives = "vector", tier = "few", doc = "a / b" },
    {
        name = "max",
        takes = "vector vector",
        gives = "vector",
        tier = "few",
        nan = "b",
        doc = "the larger one of a and b; NaN if b is NaN; if only a is, b or NaN",
    },
    { name = "abs", takes = "vector", gives = "vector", tier = "few", doc = "|v|; 0 of either sign for -0" },
    {
        name = "fma",
        takes = "vector vector vector",
        gives = "vector",
        tier = "few",
        doc = "a b + c, rounded once or twice",
    },
    {
        name = "reciprocal_root",
        takes = "vector",
        gives = "vector",
        tier = "few",
        domain = "normal",
        ulps = 3,
        doc = "1/sqrt(v) for v >= 2^-120; NaN for infinity, as squares that overflow have no root",
    },
    {
        name = "shifted_power",
        takes = "vector",
        gives = "vector",
        nan = "any",
        domain = "shifted",
        doc = "2^n, where v = 1.5 2^23 + 127 + n",
    },
    {
        name = "entry",
        takes = "list vector",
        gives = "vector",
        nan = "any",
        domain = "shifted",
        doc = "where v = 1.5 2^23 + n: number n mod 32 of 32 floats, C literals",
    },
    {
        name = "min",
        takes = "vector vector",
        gives = "vector",
        with = "entry",
        nan = "b",
        doc = "the smaller one of a and b; NaN if b is NaN; if only a is, b or NaN",
    },
    {
        name = "round_negative",
        takes = "vector",
        gives = "vector",
        tier = "few",
        unless = "shifted_power",
        nan = "any",
        domain = "exponent",
        doc = "the integer nearest to v, -126 <= v <= 0; halves either way",
    },
    {
        name = "power_of_two",
        takes = "vector",
        gives = "vector",
        tier = "few",
        unless = "shifted_power",
        nan = "any",
        domain = "whole exponent",
        doc = "2^n for an integer n from -126 to 0; a power of two for NaN",
    },
    {
        name = "transpose",
        takes = "rows",
        gives = "steps",
        tier = "few",
        partial = true,
        doc = "the list of { name, value } that transposes lanes x lanes values, and the names of the results",
    },
    {
        name = "lane_sums",
        takes = "rows",
        gives = "steps",
        doc = "the list of { name, value } before a vector whose lane k is the sum of the k-th one's lanes, and it",
    },
    {
        name = "reduce",
        takes = "vector kind",
        gives = "steps",
        tier = "few",
        doc = 'kind "max" or "add": a list of { type, name, value } that makes one float of all lanes, and that float',
    },
    { name = "index_zero", takes = "", gives = "index", tier = "few", doc = "0 in every lane" },
    { name = "index_broadcast", takes = "number", gives = "index", tier = "few", doc = "the integer in every lane" },
    {
        name = "index_or_if_positive",
        takes = "index vector bit",
        gives = "index",
        tier = "few",
        doc = "the bit added where v > 0; not where it is NaN",
    },
    {
        name = "index_store",
        takes = "address index",
        gives = "statement",
        tier = "few",
        doc = "the lanes, each below 2^16, as uint16_t",
    },
    { name = "load_words", takes = "address", gives = "index", tier = "few", doc = "32-bit words at any alignment" },
    {
        name = "load_words_partial",
        takes = "address n",
        gives = "index",
        tier = "few",
        partial = true,
        doc = "n words and zeros, reading not a byte more",
    },
    { name = "less", takes = "vector vector", gives = "mask", tier = "masks", doc = "a < b; not where one is NaN" },
    {
        name = "select",
        takes = "mask vector vector",
        gives = "vector",
        tier = "masks",
        doc = "a where it is set, else b",
    },
    { name = "any", takes = "mask", gives = "number", tier = "masks", doc = "whether a lane is set" },
    {
        name = "index_select",
        takes = "mask index index",
        gives = "index",
        tier = "masks",
        doc = "likewise of integers",
    },
    { name = "index_xor", takes = "index index", gives = "index", tier = "masks", doc = "a ^ b" },
    { name = "index_and", takes = "index index", gives = "index", tier = "masks", doc = "a & b" },
    {
        name = "index_load",
        takes = "address",
        gives = "index",
        tier = "training",
        doc = "what index_store stores, at any alignment",
    },
    { name = "index_has", takes = "index bit", gives = "mask", tier = "training", doc = "whether it has the bit" },
    { name = "index_add", takes = "index index", gives = "index", tier = "integer", doc = "a + b" },
    { name = "index_sub", takes = "index index", gives = "index", tier = "quads", doc = "a - b" },
    {
        name = "unpack_bf16",
        takes = "index",
        gives = "vectors",
        tier = "bf16",
        doc = "the list of both parts of such words as floats, the lower one first",
    },
    {
        name = "high_nibbles",
        takes = "index",
        gives = "index",
        tier = "group_quads",
        doc = "the upper four bits of each byte, as bytes",
    },
    {
        name = "unpack_i4",
        takes = "index",
        gives = "vectors",
        tier = "groups",
        doc = "the list of the eight numbers of 4 bits, 0 to 15, in such words as floats, the lowest one first, \z
            number n times 16^n, but the last as it is",
    },
    {
        name = "unpack_i8",
        takes = "index",
        gives = "vectors",
        tier = "groups",
        doc = "likewise the list of their four bytes, 0 to 255, number n times 256^n, but the last as it is",
    },
    {
        name = "store_f16",
        takes = "address vector",
        gives = "statement",
        tier = "cache",
        doc = "rounds to IEEE half precision, ties to even",
    },
    {
        name = "store_i8",
        takes = "address vector",
        gives = "statement",
        tier = "cache",
        nan = "any",
        domain = "byte",
        doc = "rounds to integers, halves either way; from -127.5 to 127.5",
    },
    { name = "store_words", takes = "address index", gives = "statement", tier = "many", doc = "at any alignment" },
    { name = "float_of", takes = "index", gives = "vector", tier = "integer", doc = "the lanes as int32_t, as floats" },
    {
        name = "dot_i16",
        takes = "index index index",
        gives = "index",
        tier = "pairs",
        doc = "sum + the products of both 16-bit integers in each word of a and of b",
    },
    {
        name = "pack_i16",
        takes = "vector vector",
        gives = "index",
        tier = "pairs",
        nan = "any",
        domain = "short",
        doc = "words of a and b, rounded to 16-bit integers, a in the low bits; halves either way",
    },
    {
        name = "store_i16",
        takes = "address vector vector",
        gives = "statement",
        tier = "pairs",
        nan = "any",
        domain = "short",
        doc = "twice as many floats as lanes, those of a first, rounded to 16-bit integers, two to a word",
    },
    {
        name = "dot_i8",
        takes = "index index index",
        gives = "index",
        tier = "quads",
        doc = "sum + the products of the four bytes in each word of a, 0 to 255, and of b, -128 to 127; modulo 2^32",
    },
    {
        name = "dot_s8",
        takes = "index index index",
        gives = "index",
        doc = "dot_i8 of the bytes of a less 128 each; none of these and of b is -128",
    },
    {
        name = "dot_b8",
        takes = "index index index",
        gives = "index",
        doc = "dot_s8 where only none of b is -128",
    },
    {
        name = "dot_i7",
        takes = "index index index",
        gives = "index",
        doc = "dot_i8 where the sum of two products next to each other is between -2^15 and 2^15",
    },
    {
        name = "dot_two_i7",
        takes = "index index index index index",
        gives = "index",
        doc = "dot_i7 of a and b, then of c and d, where the sums of such two products are between -2^14 and 2^14",
    },
    {
        name = "dot_halves",
        takes = "index index index",
        gives = "index",
        doc = "each half of the words of sum, modulo 2^16, + the products of its two bytes in a, 0 to 127, and in b",
    },
    {
        name = "add_halves",
        takes = "index",
        gives = "index",
        doc = "the sum of both halves of each word, which have signs",
    },
    {
        name = "pack_i8",
        takes = "vector vector vector vector",
        gives = "index",
        tier = "quads",
        nan = "any",
        domain = "byte",
        doc = "words of a, b, c and d, rounded to 8-bit integers, a in the low bits; halves either way",
    },
    {
        name = "store_quads",
        takes = "address vector vector vector vector",
        gives = "statement",
        tier = "quads",
        nan = "any",
        domain = "byte",
        doc = "four times as many floats as lanes, those of a first, rounded to 8-bit integers, four to a word",
    },
    {
        name = "dot_bf16",
        takes = "vector index index",
        gives = "vector",
        tier = "bf16_products",
        doc = "sum + the products of both parts of each word of a and of b, in bf16; each addition is rounded once or \z
            twice, subnormal numbers may count as 0",
    },
    {
        name = "store_bf16",
        takes = "address vector vector",
        gives = "statement",
        tier = "bf16_products",
        doc = "twice as many floats as lanes, those of a first, rounded to bf16, two to a word; ties to even; NaN \z
            stays NaN, subnormal numbers may become 0",
    },
    {
        name = "pack_bf16",
        takes = "vector vector",
        gives = "index",
        tier = "bf16_products",
        doc = "words of a and b, rounded likewise, a in the low bits",
    },
    {
        name = "max_magnitude",
        takes = "index vector",
        gives = "index",
        doc = "the larger one of the bits of |v| and those in the index: NaN and infinity are the largest",
    },
    {
        name = "reduce_magnitudes",
        takes = "index",
        gives = "steps",
        with = "max_magnitude",
        doc = "as reduce: the largest lane, as a float",
    },
    {
        name = "as_floats",
        takes = "index",
        gives = "vector",
        with = "max_magnitude",
        doc = "the bits of the lanes as those of floats",
    },
    {
        name = "largest_of",
        takes = "list",
        gives = "steps, and a vector",
        doc = "lane k is the largest lane of the k-th of 4 or 8 indices made by max_magnitude, as a float; only so \z
            many lanes count",
    },
    {
        name = "sums_of",
        takes = "list",
        gives = "steps, and an index",
        with = "largest_of",
        doc = "lane k is the sum of the lanes of the k-th of 4 or 8 indices; only so many lanes count",
    },
    {
        name = "store_words_partial",
        takes = "address n index",
        gives = "statement",
        with = "largest_of",
        doc = "the first n lanes, writing not a byte more",
    },
    { name = "prefetch_l2", takes = "address", gives = "statement", doc = "the cache line into L2: a row for later" },
    {
        name = "prefetch_l1",
        takes = "address",
        gives = "statement",
        with = "prefetch_l2",
        doc = "into L1: soon read",
    },
    {
        name = "prefetch_nta",
        takes = "address",
        gives = "statement",
        with = "prefetch_l2",
        doc = "past the caches: read once, to be copied",
    },
    {
        name = "stream",
        takes = "base vector",
        gives = "statement",
        doc = "stores past the caches, aligned to a vector",
    },
    {
        name = "stream_fence",
        takes = "",
        gives = "statement",
        with = "stream",
        doc = "makes such stores precede later ones",
    },
    {
        name = "tile_configure",
        takes = "number",
        gives = "statement",
        doc = "before the tiles of a call: 5 has so many words in a row, 7 so many rows; nil: 16",
    },
    { name = "tile_release", takes = "", gives = "statement", with = "tile_configure", doc = "behind them" },
    { name = "tile_zero", takes = "tile", gives = "statement", with = "tile_configure", doc = "all bytes 0" },
    {
        name = "tile_load",
        takes = "tile address number",
        gives = "statement",
        with = "tile_configure",
        doc = "16 rows of 64 bytes, so many bytes apart",
    },
    {
        name = "tile_store",
        takes = "tile address number",
        gives = "statement",
        with = "tile_configure",
        doc = "likewise",
    },
    {
        name = "tile_dot_i8",
        takes = "tile tile tile",
        gives = "statement",
        with = "tile_configure",
        doc = "sums + a b as integers: words of four signed bytes of a, and of unsigned ones of b",
    },
    {
        name = "tile_dot_u8",
        takes = "tile tile tile",
        gives = "statement",
        with = "tile_configure",
        doc = "likewise, of unsigned bytes of a, and of signed ones of b",
    },
    {
        name = "tile_dot_signed",
        takes = "tile tile tile",
        gives = "statement",
        with = "tile_configure",
        doc = "likewise, of signed bytes of a and b",
    },
    {
        name = "tile_dot_unsigned",
        takes = "tile tile tile",
        gives = "statement",
        with = "tile_configure",
        doc = "likewise, of unsigned bytes of a and b",
    },
    {
        name = "upper_bytes",
        takes = "index index",
        gives = "index",
        with = "tile_configure",
        doc = "of each 16 bits of a the upper byte, and above it that of b",
    },
    {
        name = "lower_bytes",
        takes = "index index",
        gives = "index",
        with = "tile_configure",
        doc = "likewise the lower ones",
    },
    {
        name = "sum_of_bytes",
        takes = "index index index",
        gives = "index",
        with = "tile_configure",
        doc = "65536 a + 256 b + c: products of upper bytes, of upper and lower ones, and of lower ones",
    },
    {
        name = "tile_dot_bf16",
        takes = "tile tile tile",
        gives = "statement",
        doc = "sums + a b as floats, words of two numbers in bf16",
    },
}

-- Each type of weights that kernels do not load as they are has two words and a tier of its own.
for _, name in ipairs(dtype.loaded_names) do
    words.tiers[name] = "weights in " .. name
    table.insert(words.list, {
        name = "load_" .. name,
        takes = "base",
        gives = "vector",
        tier = name,
        doc = "as many elements as lanes, as floats, in units of the row's scale if it has one; of i4 a whole byte is \z
            first, unless there is one lane and the number of an element",
    })
    table.insert(words.list, {
        name = "load_partial_" .. name,
        takes = "base n",
        gives = "vector",
        tier = name,
        partial = true,
        doc = "n and zeros",
    })
end

-- The words of the integer gather: an instruction set that has it has them all in its table `integer_sums`, for tables
-- of the types in its type_needs. A vector is one of integers here, `columns` bytes wide, where no floats are named; q
-- and rows are lists of four, the integers of four vectors of floats and rows of tables.
words.integer_sums = {
    { name = "rows", doc = "rows of tables that one step adds, an integer" },
    { name = "columns", doc = "bytes of each that it takes, an integer" },
    { name = "vectors", doc = "vectors that the sums of a step may take, an integer" },
    { name = "load", takes = "address", gives = "vector", doc = "bytes at any alignment" },
    { name = "load_partial", takes = "address n", gives = "vector", doc = "n of them and zeros" },
    { name = "broadcast", takes = "number", gives = "vector", doc = "a word of scores of `rows` rows in every word" },
    { name = "levels", doc = "the largest integer that a score becomes" },
    {
        name = "scores",
        doc = "the words of a step's scores, one or two, { name: what C calls it; parts(q): what of each q is in it, \z
            the others' bits 0; store(address, vector): the statement for rows that lie side by side in one vector }",
    },
    { name = "sums", doc = "what C calls the sums of a column, one or two" },
    {
        name = "add",
        takes = "sums scores vector",
        gives = "sums",
        doc = "sums + scores . signed rows; sums and scores are lists, a vector for each of `sums` and `scores`",
    },
    { name = "total", takes = "sums", gives = "vector", doc = "the one sum that they stand for" },
    {
        name = "interleave",
        takes = "rows",
        gives = "steps, and four vectors",
        doc = "a word has a column of all rows; the vectors' columns are in the order that `order` undoes",
    },
    { name = "order", takes = "rows", gives = "steps, and four vectors", doc = "columns one after the other" },
    { name = "round", takes = "vector", gives = "vector", doc = "floats to the nearest integers" },
    { name = "unite", takes = "vectors", gives = "vector", doc = "the word of such vectors" },
    {
        name = "nibbles",
        doc = "these words for rows in i4: twice as many columns as bytes, eight vectors, elements times `factor`",
    },
    { name = "bytes", doc = "these words for scores of one byte each" },
}

-- The first word of `tier` that the instruction set `set` lacks, nil: none.
function words.missing(set, tier)
    for _, word in ipairs(words.list) do
        local needed = word.tier == tier and not (word.partial and set.lanes == 1)
        if needed and word.unless and set[word.unless] then needed = false end
        if word.with and not word.tier and tier == "few" then needed = set[word.with] ~= nil end
        if needed and not set[word.name] then return word.name end
    end
end

-- The first word of the integer gather that the instruction set `set` lacks though it has one, nil: none.
local function missing_of_gather(set)
    for _, word in ipairs(set.integer_sums and words.integer_sums or {}) do
        if not set.integer_sums[word.name] then return word.name end
    end
end

-- Raises one line unless the instruction set `set` has all words of the tiers in the list, which `kernel` needs, and
-- all of its integer gather, if it has one.
function words.demand(set, tiers, kernel)
    local function refuse(missing, tier)
        local form = "--isa: %s: lacks the word %s of tier %s, which %s needs"
        if missing then misuse(form:format(set.name, missing, tier, kernel)) end
    end
    for _, tier in ipairs(tiers) do
        refuse(words.tiers[tier] and words.missing(set, tier), tier)
    end
    refuse(missing_of_gather(set), "integer_sums")
end

return words
