-- What SSE, AVX2 and AVX-512 have in common: they speak of _mmN_operation_ps.

local expression = require "gen.isa.expression"
local nibbles = require "gen.isa.parts.nibbles"

local at, cast = expression.sum, expression.cast

-- The first two passes of a transpose, alike in each 128-bit part: pairs of rows, pairs of pairs. Quad 4q + c then
-- holds columns c, c + 4, … of rows 4q … 4q + 3. Appends { name, value } to `steps`.
local function transpose_quads(rows, call, steps)
    local function let(name, value) steps[#steps + 1] = { name = name, value = value } end
    for i = 0, #rows - 1, 2 do
        let("pair" .. i, call("unpacklo_ps", rows[i + 1], rows[i + 2]))
        let("pair" .. i + 1, call("unpackhi_ps", rows[i + 1], rows[i + 2]))
    end
    for i = 0, #rows - 1, 4 do
        for half = 0, 1 do
            let("quad" .. i + 2 * half, call("shuffle_ps", "pair" .. i + half, "pair" .. i + 2 + half, "0x44"))
            let("quad" .. i + 2 * half + 1, call("shuffle_ps", "pair" .. i + half, "pair" .. i + 2 + half, "0xee"))
        end
    end
    return let
end

-- The sums of the lanes of each of `rows`, pairs of rows joined until one is left: in each 128-bit part, then of the
-- parts, which the function `word` takes with these two masks. The steps { name, value } and what is left.
local function lane_sums(rows, call, word, low, high)
    local steps, list = {}, rows
    local function join(first, first_mask, second, second_mask)
        local joined = {}
        for i = 1, #list, 2 do
            local name, a, b = "sums" .. #list // 2 .. "_" .. i // 2, list[i], list[i + 1]
            local value = call("add_ps", call(first, a, b, first_mask), call(second, a, b, second_mask))
            steps[#steps + 1], joined[#joined + 1] = { name = name, value = value }, name
        end
        list = joined
    end
    join("unpacklo_ps", nil, "unpackhi_ps", nil)
    join("shuffle_ps", "0x44", "shuffle_ps", "0xee")
    while #list > 1 do
        join(word, low, word, high)
    end
    return steps, list[1]
end

-- The functions of the vectors of `bits`, "_mm256_" and a name.
local function caller(bits)
    local prefix = bits == 128 and "_mm_" or "_mm" .. bits .. "_"
    return function(name, ...) return expression.call(prefix .. name, ...) end
end

-- Integers in memory, `bits` of them, at any alignment.
local function load_bytes(bits, base)
    return expression.call(
        "_mm" .. (bits > 128 and bits or "") .. "_loadu_si" .. bits,
        cast("const __m" .. bits .. "i *", cast("const void *", base))
    )
end
local four_bytes = {
    name = "sse4_bytes",
    text = [[
typedef int32_t __attribute__((may_alias, aligned(1))) $sse4_bytes; /* four bytes at any address */]],
}

-- Adds the words that load tables in i4: of eight elements in a word each moves to the top of its lane, and back with
-- its sign. The set has `four_bytes`, or its narrower one has.
local function add_nibbles(set, bits, call)
    local lanes = bits // 32
    -- The word whose first byte is byte `first`, of `count` bytes in memory.
    local function word(base, first, count)
        if count >= 4 then
            return "*" .. cast("const $sse4_bytes *", cast("const void *", expression.sum(base, first)))
        end
        local bytes = {}
        for k = 0, count - 1 do
            bytes[k + 1] = expression.index(base, first + k) .. (k > 0 and " << " .. 8 * k or "")
        end
        return count > 0 and table.concat(bytes, " | ") or "0"
    end
    local function load(base, n)
        local moves, bytes = {}, (n + 1) // 2
        for lane = 0, lanes - 1 do
            local left = 28 - lane % 8 * 4 -- by multiplication, where no instruction moves each lane on its own
            moves[lane + 1] = bits > 128 and (lane < n and left or 32) or lane < n and 1 << left or 0
        end
        local all = call("set1_epi32", word(base, 0, bytes))
        if lanes > 8 then all = call("mask_set1_epi32", all, "0xff00", word(base, 4, bytes - 4)) end
        all = call(bits > 128 and "sllv_epi32" or "mullo_epi32", all, call("setr_epi32", table.unpack(moves)))
        return call("cvtepi32_ps", call("srai_epi32", all, "28"))
    end
    function set.load_partial_i4(base, n) return load(base, n) end
    function set.load_i4(base) return load(base, lanes) end
end

local function store_bytes(bits, base, value)
    return expression.call(
        "_mm" .. (bits > 128 and bits or "") .. "_storeu_si" .. bits,
        cast("__m" .. bits .. "i *", cast("void *", base)),
        value
    )
end

local function prefetch(hint)
    return function(base, offset)
        return expression.call("_mm_prefetch", cast("const char *", at(base, offset)), "_MM_HINT_" .. hint)
    end
end

-- The steps of reduce_magnitudes: halves, until one is left.
local function halve_magnitudes(bits, magnitudes)
    local steps, from = {}, magnitudes
    local function let(type, prefix, name, a, b)
        steps[#steps + 1] = { type = type, name = name, value = expression.call(prefix .. "_max_epi32", a, b) }
        from = name
    end
    if bits == 512 then
        let(
            "__m256i",
            "_mm256",
            "eight",
            expression.call("_mm512_castsi512_si256", from),
            expression.call("_mm512_extracti64x4_epi64", from, "1")
        )
    end
    if bits > 128 then
        let(
            "__m128i",
            "_mm",
            "four",
            expression.call("_mm256_castsi256_si128", from),
            expression.call("_mm256_extracti128_si256", from, "1")
        )
    end
    let("__m128i", "_mm", "two", from, expression.call("_mm_shuffle_epi32", from, "0x4e"))
    let("__m128i", "_mm", "one", from, expression.call("_mm_shuffle_epi32", from, "0xb1"))
    return steps, "_mm_cvtss_f32(_mm_castsi128_ps(one))"
end

-- Adds to `set`, whose vectors have `bits`, the words of products in bf16, and a helper that rounds to it. `join`: what
-- makes one vector of the lanes of two, each with 16 bits of a word; nan: the C expression of `nearest` with all bits
-- set where v is NaN.
local function add_bf16(set, bits, join, nan)
    local name = set.name .. "_to_bf16"
    set.helpers = set.helpers or {}
    table.insert(set.helpers, {
        name = name,
        includes = set.includes,
        guard = set.guard,
        text = ([[
/* The upper halves of the nearest floats that have no lower ones, ties to even. NaN stays NaN. */
static inline INDEX $NAME(VECTOR v)
{
    const INDEX bits = PREFIX_castps_siBITS(v);
    const INDEX odd = PREFIX_and_siBITS(PREFIX_srli_epi32(bits, 16), PREFIX_set1_epi32(1));
    const INDEX nearest = PREFIX_add_epi32(PREFIX_add_epi32(bits, PREFIX_set1_epi32(0x7fff)), odd);
    return PREFIX_srli_epi32(NAN, 16);
}]]):gsub("%u%u+", {
            INDEX = set.index,
            VECTOR = set.vector,
            NAME = name,
            PREFIX = bits == 128 and "_mm" or "_mm" .. bits,
            BITS = bits,
            NAN = nan,
        }),
    })
    set.dot_bf16 = expression.dot_bf16(set)
    local function rounded(v) return expression.call("$" .. name, v) end
    function set.store_bf16(base, offset, a, b) return set.store_words(base, offset, join(rounded(a), rounded(b))) end
    function set.pack_bf16(a, b)
        local prefix = bits == 128 and "_mm" or "_mm" .. bits
        local upper = expression.call(prefix .. "_slli_epi32", rounded(b), "16")
        return expression.call(prefix .. "_or_si" .. bits, rounded(a), upper)
    end
end

-- Adds to `set`, whose vectors have `bits`, packed bytes and products of them, summed in pairs as 16-bit integers, and
-- helpers.
local function add_pairs_of_bytes(set, bits)
    local name = set.name
    -- MADD multiplies pairs, bytes after they were widened; with i7 it adds up two MADDUBS, which multiply quads.
    set.products_at_once = { i16 = 2, i8 = 2, i7 = 8 / 3 }
    local function add(suffix, text)
        table.insert(set.helpers, {
            name = name .. suffix,
            includes = set.includes,
            guard = set.guard,
            text = text:gsub("%u%u+", {
                INDEX = set.index,
                VECTOR = set.vector,
                NAME = name,
                PREFIX = bits == 128 and "_mm" or "_mm" .. bits,
                BITS = bits,
            }),
        })
    end
    add("_dot_i8", [[
/* sum + the products of four unsigned bytes of each word of a and signed ones of b: even and odd ones by themselves,
   widened to 16 bits, as MADDUBS would saturate sums of two. */
static inline INDEX $NAME_dot_i8(INDEX sum, INDEX a, INDEX b)
{
    return PREFIX_add_epi32(sum,
        PREFIX_add_epi32(
            PREFIX_madd_epi16(PREFIX_and_siBITS(a, PREFIX_set1_epi16(0xff)),
                PREFIX_srai_epi16(PREFIX_slli_epi16(b, 8), 8)),
            PREFIX_madd_epi16(PREFIX_srli_epi16(a, 8), PREFIX_srai_epi16(b, 8))));
}]])
    add("_dot_i7", [[
/* sum + the products of four unsigned bytes of each word of a and signed ones of b: two together fit into 16 bits. */
static inline INDEX $NAME_dot_i7(INDEX sum, INDEX a, INDEX b)
{
    return PREFIX_add_epi32(sum, PREFIX_madd_epi16(PREFIX_maddubs_epi16(a, b), PREFIX_set1_epi16(1)));
}]])
    add("_dot_two_i7", [[
/* sum + the products of a and b and of c and d likewise, where four together fit into 16 bits. */
static inline INDEX $NAME_dot_two_i7(INDEX sum, INDEX a, INDEX b, INDEX c, INDEX d)
{
    const INDEX pairs = PREFIX_add_epi16(PREFIX_maddubs_epi16(a, b), PREFIX_maddubs_epi16(c, d));
    return PREFIX_add_epi32(sum, PREFIX_madd_epi16(pairs, PREFIX_set1_epi16(1)));
}]])
    add("_dot_s8", [[
/* The same of signed bytes, those of a 128 larger: magnitudes of b times those of a with signs of b, at most 127. */
static inline INDEX $NAME_dot_s8(INDEX sum, INDEX a, INDEX b)
{
    const INDEX signs = PREFIX_sign_epi8(PREFIX_xor_siBITS(a, PREFIX_set1_epi8((char) 0x80)), b);
    return $NAME_dot_i7(sum, PREFIX_abs_epi8(b), signs);
}]])
    add("_dot_b8", [[
/* The same where those of a may be 0: their magnitudes, at most 128, times those of b with their signs. */
static inline INDEX $NAME_dot_b8(INDEX sum, INDEX a, INDEX b)
{
    const INDEX weights = PREFIX_xor_siBITS(a, PREFIX_set1_epi8((char) 0x80));
    return $NAME_dot_i7(sum, PREFIX_abs_epi8(weights), PREFIX_sign_epi8(b, weights));
}]])
    add("_pack_i8", [[
/* Four vectors of floats as 8-bit integers, the nearest: a word has one of each, that of a in the lowest bits. */
static inline INDEX $NAME_pack_i8(VECTOR a, VECTOR b, VECTOR c, VECTOR d)
{
    return PREFIX_or_siBITS(
        PREFIX_or_siBITS(PREFIX_and_siBITS(PREFIX_cvtps_epi32(a), PREFIX_set1_epi32(0xff)),
            PREFIX_and_siBITS(PREFIX_slli_epi32(PREFIX_cvtps_epi32(b), 8), PREFIX_set1_epi32(0xff00))),
        PREFIX_or_siBITS(
            PREFIX_and_siBITS(PREFIX_slli_epi32(PREFIX_cvtps_epi32(c), 16), PREFIX_set1_epi32(0xff0000)),
            PREFIX_slli_epi32(PREFIX_cvtps_epi32(d), 24)));
}]])
    function set.pack_i8(a, b, c, d) return expression.call("$" .. name .. "_pack_i8", a, b, c, d) end
    function set.dot_i8(sum, a, b) return expression.call("$" .. name .. "_dot_i8", sum, a, b) end
    function set.dot_i7(sum, a, b) return expression.call("$" .. name .. "_dot_i7", sum, a, b) end
    function set.dot_two_i7(sum, a, b, c, d) return expression.call("$" .. name .. "_dot_two_i7", sum, a, b, c, d) end
    function set.dot_s8(sum, a, b) return expression.call("$" .. name .. "_dot_s8", sum, a, b) end
    function set.dot_b8(sum, a, b) return expression.call("$" .. name .. "_dot_b8", sum, a, b) end
    local call = caller(bits)
    function set.dot_halves(sum, a, b) return call("add_epi16", sum, call("maddubs_epi16", a, b)) end
    function set.add_halves(sums) return call("madd_epi16", sums, call("set1_epi16", "1")) end
end

-- The words of the width `bits`, and the tools that others are made with.
return function(bits)
    local call = caller(bits)
    local function floats(words) return call("castsi" .. bits .. "_ps", words) end
    -- Four vectors as 8-bit integers: each part of 128 bits packs its own.
    local function bytes_of(a, b, c, d)
        local function pair(v, w) return call("packs_epi32", call("cvtps_epi32", v), call("cvtps_epi32", w)) end
        return call("packs_epi16", pair(a, b), pair(c, d))
    end
    local unpack_i4, unpack_i8 = expression.unpacked(function(words, mask, right)
        local last = right and call("srli_epi32", words, right)
        return call("cvtepi32_ps", last or call("and_si" .. bits, words, call("set1_epi32", mask)))
    end)
    return {
        architecture = "x86",
        includes = { "<immintrin.h>" },
        register_barrier = true,
        stream = function(base, v) return call("stream_ps", base, v) end,
        stream_fence = function() return "_mm_sfence()" end,
        -- Into L2: L1 is too small to hold whole rows until they are used. The next strip of 16 of them fits: T0 makes
        -- few tokens' f32 layer 3 to 14 % faster than T1 does, NTA 1.6 times slower (Cascade Lake).
        prefetch_l2 = prefetch "T1",
        prefetch_l1 = prefetch "T0",
        prefetch_nta = prefetch "NTA",
        zero = function() return call("setzero_ps") end,
        broadcast = function(s) return call("set1_ps", s) end,
        load = function(base, offset) return call("load_ps", at(base, offset)) end,
        load_unaligned = function(base, offset) return call("loadu_ps", at(base, offset)) end,
        load_words = function(base, offset) return load_bytes(bits, at(base, offset)) end,
        store_words = function(base, offset, words) return store_bytes(bits, at(base, offset), words) end,
        unpack_bf16 = function(words)
            return {
                floats(call("slli_epi32", words, "16")),
                floats(call("and_si" .. bits, words, call("set1_epi32", "-65536"))),
            }
        end,
        high_nibbles = function(words)
            return call("and_si" .. bits, call("srli_epi32", words, 4), call("set1_epi32", "0x0f0f0f0f"))
        end,
        unpack_i4 = unpack_i4,
        unpack_i8 = unpack_i8,
        store = function(base, offset, v) return call("store_ps", at(base, offset), v) end,
        store_unaligned = function(base, offset, v) return call("storeu_ps", at(base, offset), v) end,
        add = function(a, b) return call("add_ps", a, b) end,
        sub = function(a, b) return call("sub_ps", a, b) end,
        mul = function(a, b) return call("mul_ps", a, b) end,
        div = function(a, b) return call("div_ps", a, b) end,
        max = function(a, b) return call("max_ps", a, b) end,
        fma = function(a, b, c) return call("fmadd_ps", a, b, c) end,
        reciprocal_root = function(v) return call("div_ps", call("sqrt_ps", v), v) end,
        shifted_power = function(v) return floats(call("slli_epi32", call("castps_si" .. bits, v), "23")) end,
        float_of = function(index) return call("cvtepi32_ps", index) end,
        index_zero = function() return call("setzero_si" .. bits) end,
        index_broadcast = function(n) return call("set1_epi32", cast("int", n)) end,
        index_add = function(a, b) return call("add_epi32", a, b) end,
        index_sub = function(a, b) return call("sub_epi32", a, b) end,
        index_xor = function(a, b) return call("xor_si" .. bits, a, b) end,
        index_and = function(a, b) return call("and_si" .. bits, a, b) end,
        pack_i16 = function(a, b)
            return call(
                "or_si" .. bits,
                call("and_si" .. bits, call("cvtps_epi32", a), call("set1_epi32", "0xffff")),
                call("slli_epi32", call("cvtps_epi32", b), "16")
            )
        end,
        max_magnitude = function(magnitudes, v)
            return call(
                "max_epi32",
                magnitudes,
                call("and_si" .. bits, call("castps_si" .. bits, v), call("set1_epi32", "0x7fffffff"))
            )
        end,
        as_floats = floats,
        reduce_magnitudes = function(magnitudes) return halve_magnitudes(bits, magnitudes) end,
    }, {
        call = call,
        four_bytes = four_bytes,
        add_nibbles = function(set) add_nibbles(set, bits, call) end,
        -- The words of rows in i4, of an integer gather `words` of rows in i8.
        gather_nibbles = function(words)
            return nibbles(words, {
                left = function(v, count) return call("slli_epi32", v, tostring(count)) end,
                masked = function(v, mask) return call("and_si" .. bits, v, call("set1_epi32", cast("int", mask))) end,
                zip = function(a, b) return { call("unpacklo_ps", a, b), call("unpackhi_ps", a, b) } end,
            })
        end,
        load_bytes = load_bytes,
        store_bytes = store_bytes,
        bytes_of = bytes_of,
        add_bf16 = function(set, join, nan) return add_bf16(set, bits, join, nan) end,
        add_pairs_of_bytes = function(set) add_pairs_of_bytes(set, bits) end,
        transpose_quads = function(rows, steps) return transpose_quads(rows, call, steps) end,
        lane_sums = function(rows, ...) return lane_sums(rows, call, ...) end,
    }
end
