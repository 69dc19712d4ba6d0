-- What AVX2 and AVX-512 have in common: both speak of _mmN_operation_ps.

local function at(base, offset)
    if offset == 0 then return base end
    return base .. " + " .. offset
end

-- The same as an operand of a cast.
local function operand(base, offset)
    if offset == 0 then return base end
    return "(" .. at(base, offset) .. ")"
end

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

-- The words of the width `bits`.
return function(bits)
    local prefix = "_mm" .. bits .. "_"
    local function call(name, ...) return prefix .. name .. "(" .. table.concat({ ... }, ", ") .. ")" end
    local function floats(words) return call("castsi" .. bits .. "_ps", words) end
    -- Bytes from memory, whole: `width` bits as an integer vector.
    local function bytes(width, base)
        return "_mm"
            .. (width == 128 and "" or width)
            .. "_loadu_si"
            .. width
            .. "((const __m"
            .. width
            .. "i *) (const void *) "
            .. base
            .. ")"
    end
    return {
        at = at,
        operand = operand,
        call = call,
        transpose_quads = function(rows, steps) return transpose_quads(rows, call, steps) end,
        stream = function(base, v) return call("stream_ps", base, v) end,
        stream_fence = function() return "_mm_sfence()" end,
        -- Into L2: L1 is too small to hold whole rows until they are used. The next strip of 16 of them fits: T0 makes
        -- few tokens' f32 layer 3 to 14 % faster than T1 does, NTA 1.6 times slower (Cascade Lake).
        prefetch_l2 = function(base, offset)
            return "_mm_prefetch((const char *) (" .. at(base, offset) .. "), _MM_HINT_T1)"
        end,
        prefetch_l1 = function(base, offset)
            return "_mm_prefetch((const char *) (" .. at(base, offset) .. "), _MM_HINT_T0)"
        end,
        prefetch_nta = function(base, offset)
            return "_mm_prefetch((const char *) (" .. at(base, offset) .. "), _MM_HINT_NTA)"
        end,
        includes = { "<immintrin.h>" },
        register_barrier = true,
        zero = function() return call("setzero_ps") end,
        broadcast = function(s) return call("set1_ps", s) end,
        load = function(base, offset) return call("load_ps", at(base, offset)) end,
        load_unaligned = function(base, offset) return call("loadu_ps", at(base, offset)) end,
        bytes = bytes,
        load_words = function(base, offset) return bytes(bits, operand(base, offset)) end,
        store_words = function(base, offset, words)
            return prefix
                .. "storeu_si"
                .. bits
                .. "((__m"
                .. bits
                .. "i *) (void *) "
                .. operand(base, offset)
                .. ", "
                .. words
                .. ")"
        end,
        unpack_bf16 = function(words)
            return {
                floats(call("slli_epi32", words, "16")),
                floats(call("and_si" .. bits, words, call("set1_epi32", "-65536"))),
            }
        end,
        store = function(base, offset, v) return call("store_ps", at(base, offset), v) end,
        store_unaligned = function(base, offset, v) return call("storeu_ps", at(base, offset), v) end,
        add = function(a, b) return call("add_ps", a, b) end,
        sub = function(a, b) return call("sub_ps", a, b) end,
        mul = function(a, b) return call("mul_ps", a, b) end,
        div = function(a, b) return call("div_ps", a, b) end,
        max = function(a, b) return call("max_ps", a, b) end,
        fma = function(a, b, c) return call("fmadd_ps", a, b, c) end,
        index_broadcast = function(n) return call("set1_epi32", "(int) " .. n) end,
        float_of = function(index) return call("cvtepi32_ps", index) end,
        pack_i16 = function(a, b)
            return call(
                "or_si" .. bits,
                call("and_si" .. bits, call("cvtps_epi32", a), call("set1_epi32", "0xffff")),
                call("slli_epi32", call("cvtps_epi32", b), "16")
            )
        end,
        index_add = function(a, b) return call("add_epi32", a, b) end,
        index_xor = function(a, b) return call("xor_si" .. bits, a, b) end,
        max_magnitude = function(most, v)
            return call(
                "max_epi32",
                most,
                call("and_si" .. bits, call("castps_si" .. bits, v), call("set1_epi32", "0x7fffffff"))
            )
        end,
        -- Halves, until one is left.
        reduce_magnitudes = function(most)
            local steps = {}
            local function let(type, name, a, b)
                steps[#steps + 1] = {
                    type = type,
                    name = name,
                    value = (type == "__m256i" and "_mm256" or "_mm") .. "_max_epi32(" .. a .. ", " .. b .. ")",
                }
            end
            if bits == 512 then
                let(
                    "__m256i",
                    "eight",
                    "_mm512_castsi512_si256(" .. most .. ")",
                    "_mm512_extracti64x4_epi64(" .. most .. ", 1)"
                )
                most = "eight"
            end
            let(
                "__m128i",
                "four",
                "_mm256_castsi256_si128(" .. most .. ")",
                "_mm256_extracti128_si256(" .. most .. ", 1)"
            )
            let("__m128i", "two", "four", "_mm_shuffle_epi32(four, 0x4e)")
            let("__m128i", "one", "two", "_mm_shuffle_epi32(two, 0xb1)")
            return steps, "_mm_cvtss_f32(_mm_castsi128_ps(one))"
        end,
        reciprocal_root = function(v) return call("div_ps", call("set1_ps", "1.0f"), call("sqrt_ps", v)) end,
    }
end
