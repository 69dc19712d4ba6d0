-- SVE: the first lanes of vectors of any length that has as many; 32 registers.
--
-- A vector's other lanes are not touched: every word works under the predicate of those lanes.

local dtype = require "gen.plan.dtype"
local expression = require "gen.isa.expression"

local at, call, cast = expression.sum, expression.call, expression.cast
local function first(n) return "svptrue_pat_b32(SV_VL" .. n .. ")" end

return function(name, lanes)
    local all = first(lanes)
    local function f32(word, ...) return call("sv" .. word .. "_f32_x", all, ...) end

    local sve = {
        name = name,
        any_alignment = true,
        lanes = lanes,
        registers = 32,
        l2_bytes = 1 << 20,
        sizeless = true,
        architecture = "aarch64",
        flags = { "-march=armv8.2-a+sve" },
        attributes = { gcc = "arch=armv8.2-a+sve", clang = "sve", clang_major = 17 },
        guard = "defined(__ARM_FEATURE_SVE)",
        includes = { "<arm_sve.h>" },
        vector = "svfloat32_t",
        index = "svuint32_t",
        mask = "svbool_t",
    }

    -- Words that take several instructions.
    sve.helpers = {
        {
            name = "sve_dot_i16",
            includes = sve.includes,
            guard = sve.guard,
            text = [[
/* sum + the products of both 16-bit integers in each word of a and of b, in the lanes that are used. */
static inline svuint32_t $sve_dot_i16(svuint32_t sum, svuint32_t a, svuint32_t b)
{
    const svbool_t all = ALL;
    const svint32_t a_all = svreinterpret_s32_u32(a), b_all = svreinterpret_s32_u32(b);
    const svint32_t a_low = svexth_s32_x(all, a_all), a_high = svasr_n_s32_x(all, a_all, 16);
    const svint32_t b_low = svexth_s32_x(all, b_all), b_high = svasr_n_s32_x(all, b_all, 16);
    const svint32_t low = svmla_s32_x(all, svreinterpret_s32_u32(sum), a_low, b_low);
    return svreinterpret_u32_s32(svmla_s32_x(all, low, a_high, b_high));
}]],
        },
        {
            name = "sve_dot_i8",
            includes = sve.includes,
            guard = sve.guard,
            text = [[
/* sum + the products of the four bytes in each word of a, without a sign, and of b, with one: those of a - 128, then
   128 b as 64 b + 64 b. */
static inline svuint32_t $sve_dot_i8(svuint32_t sum, svuint32_t a, svuint32_t b)
{
    const svint8_t less = svreinterpret_s8_u32(sveor_n_u32_x(ALL, a, 0x80808080u)), bytes = svreinterpret_s8_u32(b);
    const svint32_t dot = svdot_s32(svreinterpret_s32_u32(sum), less, bytes);
    const svint8_t half = svdup_n_s8(64);
    return svreinterpret_u32_s32(svdot_s32(svdot_s32(dot, half, bytes), half, bytes));
}]],
        },
        {
            name = "sve_store_quads",
            includes = sve.includes,
            guard = sve.guard,
            text = [[
/* The nearest integers to the lanes that are used of a, b, c and d. */
static inline void $sve_store_quads(void *to, svfloat32_t a, svfloat32_t b, svfloat32_t c, svfloat32_t d)
{
    int8_t *bytes = (int8_t *) to;
    svst1b_s32(ALL, bytes, svcvt_s32_f32_x(ALL, svrintn_f32_x(ALL, a)));
    svst1b_s32(ALL, bytes + LANES, svcvt_s32_f32_x(ALL, svrintn_f32_x(ALL, b)));
    svst1b_s32(ALL, bytes + 2 * LANES, svcvt_s32_f32_x(ALL, svrintn_f32_x(ALL, c)));
    svst1b_s32(ALL, bytes + 3 * LANES, svcvt_s32_f32_x(ALL, svrintn_f32_x(ALL, d)));
}]],
        },
        {
            name = "sve_store_i16",
            includes = sve.includes,
            guard = sve.guard,
            text = [[
/* The nearest integers to the lanes that are used of a and of b. */
static inline void $sve_store_i16(void *to, svfloat32_t a, svfloat32_t b)
{
    int16_t *halves = (int16_t *) to;
    svst1h_s32(ALL, halves, svcvt_s32_f32_x(ALL, svrintn_f32_x(ALL, a)));
    svst1h_s32(ALL, halves + LANES, svcvt_s32_f32_x(ALL, svrintn_f32_x(ALL, b)));
}]],
        },
    }

    table.insert(sve.helpers, {
        name = "sve_store_bf16",
        includes = sve.includes,
        guard = sve.guard,
        text = [[
/* The upper halves of the nearest floats that have no lower ones, ties to even, of the lanes that are used. NaN stays
   NaN. */
static inline void $sve_store_half_bf16(uint16_t *to, svfloat32_t v)
{
    const svuint32_t bits = svreinterpret_u32_f32(v);
    const svuint32_t odd = svand_n_u32_x(ALL, svlsr_n_u32_x(ALL, bits, 16), 1);
    const svuint32_t nearest = svadd_u32_x(ALL, svadd_n_u32_x(ALL, bits, 0x7fff), odd);
    const svuint32_t numbers = svsel_u32(svcmpeq_f32(ALL, v, v), nearest, svdup_n_u32(0x7fc00000));
    svst1h_u32(ALL, to, svlsr_n_u32_x(ALL, numbers, 16));
}

static inline void $sve_store_bf16(void *to, svfloat32_t a, svfloat32_t b)
{
    $sve_store_half_bf16((uint16_t *) to, a);
    $sve_store_half_bf16((uint16_t *) to + LANES, b);
}]],
    })

    for _, helper in ipairs(sve.helpers) do
        helper.text = helper.text:gsub("%f[%w]ALL%f[%W]", all):gsub("LANES", lanes)
    end

    function sve.zero() return "svdup_n_f32(0.0f)" end
    function sve.broadcast(s) return call("svdup_n_f32", s) end
    function sve.load_partial(base, offset, n) return call("svld1_f32", first(n), at(base, offset)) end
    function sve.load(base, offset) return sve.load_partial(base, offset, lanes) end
    sve.load_unaligned = sve.load
    function sve.store_partial(base, offset, n, v) return call("svst1_f32", first(n), at(base, offset), v) end
    function sve.store(base, offset, v) return sve.store_partial(base, offset, lanes, v) end
    sve.store_unaligned = sve.store
    for _, word in ipairs { "add", "sub", "mul", "div", "max" } do
        sve[word] = function(a, b) return f32(word, a, b) end
    end
    function sve.abs(v) return f32("abs", v) end
    function sve.fma(a, b, c) return f32("mla", c, a, b) end
    function sve.reciprocal_root(v) return f32("div", f32("sqrt", v), v) end
    function sve.shifted_power(v)
        return call("svreinterpret_f32_u32", call("svlsl_n_u32_x", all, call("svreinterpret_u32_f32", v), "23"))
    end
    function sve.less(a, b) return call("svcmplt_f32", all, a, b) end
    function sve.select(mask, a, b) return call("svsel_f32", mask, a, b) end
    function sve.any(mask) return call("svptest_any", all, mask) end
    function sve.index_zero() return "svdup_n_u32(0)" end
    function sve.index_broadcast(n) return call("svdup_n_u32", n) end
    function sve.index_add(a, b) return call("svadd_u32_x", all, a, b) end
    function sve.index_sub(a, b) return call("svsub_u32_x", all, a, b) end
    function sve.index_load(base, offset) return call("svld1uh_u32", all, at(base, offset)) end
    function sve.index_has(index, bit)
        return call("svcmpne_n_u32", all, call("svand_n_u32_x", all, index, bit .. "u"), "0")
    end
    function sve.index_xor(a, b) return call("sveor_u32_x", all, a, b) end
    function sve.index_and(a, b) return call("svand_u32_x", all, a, b) end
    function sve.index_select(mask, a, b) return call("svsel_u32", mask, a, b) end
    function sve.index_or_if_positive(index, z, bit)
        return call("svorr_n_u32_m", call("svcmpgt_n_f32", all, z, "0.0f"), index, bit)
    end
    function sve.index_store(base, offset, index) return call("svst1h_u32", all, at(base, offset), index) end

    local function upper_half(v) return call("svreinterpret_f32_u32", call("svlsl_n_u32_x", all, v, "16")) end
    function sve.load_partial_bf16(base, n) return upper_half(call("svld1uh_u32", first(n), base)) end
    function sve.load_partial_f16(base, n)
        return call("svcvt_f32_f16_x", all, call("svreinterpret_f16_u32", call("svld1uh_u32", first(n), base)))
    end
    function sve.load_partial_i8(base, n) return call("svcvt_f32_s32_x", all, call("svld1sb_s32", first(n), base)) end
    -- fp8 with the sign extended, moved to where half precision has fraction and exponent; of the copies of the sign
    -- only the first one is left. The exponent's bias is larger by 8: 1/256 of each number, exactly.
    function sve.load_partial_e4m3(base, n)
        local bytes = call("svld1sb_s32", first(n), expression.cast("const int8_t *", base))
        local halves = call("svlsl_n_u32_x", all, call("svreinterpret_u32_s32", bytes), 7)
        return call(
            "svcvt_f32_f16_x",
            all,
            call("svreinterpret_f16_u32", call("svand_n_u32_x", all, halves, "0xbf80u"))
        )
    end
    for _, type in ipairs(dtype.loaded_names) do
        local partial = sve["load_partial_" .. type]
        sve["load_" .. type] = partial and function(base) return partial(base, lanes) end
    end
    function sve.load_words_partial(base, offset, n) return call("svld1_u32", first(n), at(base, offset)) end
    -- As bytes: the elements in memory may be of any type.
    local bytes = "svptrue_pat_b8(SV_VL" .. 4 * lanes .. ")"
    function sve.load_words(base, offset)
        return call("svreinterpret_u32_u8", call("svld1_u8", bytes, cast("const uint8_t *", at(base, offset))))
    end
    function sve.store_words(base, offset, words)
        return call("svst1_u8", bytes, cast("uint8_t *", at(base, offset)), call("svreinterpret_u8_u32", words))
    end
    function sve.unpack_bf16(words)
        return { upper_half(words), call("svreinterpret_f32_u32", call("svand_n_u32_x", all, words, "0xffff0000u")) }
    end

    sve.dot_bf16 = expression.dot_bf16(sve)
    function sve.store_bf16(base, offset, a, b) return call("$sve_store_bf16", at(base, offset), a, b) end
    function sve.store_f16(base, offset, v)
        local halves = call("svreinterpret_u32_f16", call("svcvt_f16_f32_x", all, v))
        return call("svst1h_u32", all, at(base, offset), halves)
    end
    local function nearest_integers(v) return call("svcvt_s32_f32_x", all, f32("rintn", v)) end
    local function words_of(v) return call("svreinterpret_u32_s32", nearest_integers(v)) end
    function sve.store_i8(base, offset, v) return call("svst1b_s32", all, at(base, offset), nearest_integers(v)) end
    function sve.store_i16(base, offset, a, b) return call("$sve_store_i16", at(base, offset), a, b) end
    function sve.pack_i16(a, b)
        local low = call("svand_n_u32_x", all, words_of(a), "0xffffu")
        return call("svorr_u32_x", all, low, call("svlsl_n_u32_x", all, words_of(b), "16"))
    end
    function sve.pack_i8(a, b, c, d)
        local word
        for place, v in ipairs { a, b, c, d } do
            local byte = place < 4 and call("svand_n_u32_x", all, words_of(v), "0xffu") or words_of(v)
            if place > 1 then byte = call("svlsl_n_u32_x", all, byte, tostring(8 * (place - 1))) end
            word = word and call("svorr_u32_x", all, word, byte) or byte
        end
        return word
    end
    function sve.store_quads(base, offset, a, b, c, d) return call("$sve_store_quads", at(base, offset), a, b, c, d) end
    function sve.dot_i8(sum, a, b) return call("$sve_dot_i8", sum, a, b) end
    function sve.dot_i16(sum, a, b) return call("$sve_dot_i16", sum, a, b) end
    function sve.high_nibbles(words)
        return call("svand_n_u32_x", all, call("svlsr_n_u32_x", all, words, 4), "0x0f0f0f0fu")
    end
    sve.unpack_i4, sve.unpack_i8 = expression.unpacked(function(words, mask, right)
        local last = right and call("svlsr_n_u32_x", all, words, right)
        return call("svcvt_f32_u32_x", all, last or call("svand_n_u32_x", all, words, mask .. "u"))
    end)
    function sve.float_of(index) return call("svcvt_f32_s32_x", all, call("svreinterpret_s32_u32", index)) end
    function sve.max_magnitude(magnitudes, v)
        local bits = call("svreinterpret_s32_f32", sve.abs(v))
        return call("svreinterpret_u32_s32", call("svmax_s32_x", all, call("svreinterpret_s32_u32", magnitudes), bits))
    end
    function sve.as_floats(index) return call("svreinterpret_f32_u32", index) end
    function sve.reduce_magnitudes(magnitudes)
        local largest = call("svdup_n_u32", call("svmaxv_u32", all, magnitudes))
        return {}, call("svlastb_f32", all, call("svreinterpret_f32_u32", largest))
    end

    local function prefetch(locality)
        return function(base, offset)
            return call("__builtin_prefetch", cast("const char *", at(base, offset)), 0, locality)
        end
    end
    sve.prefetch_l1, sve.prefetch_l2, sve.prefetch_nta = prefetch(3), prefetch(2), prefetch(0)

    -- Rows whose numbers differ in one bit exchange what lies in the lanes whose numbers differ in it: lanes and pairs
    -- by TRN, quads by a table of lanes.
    function sve.transpose(r)
        local steps, rows = {}, { table.unpack(r) }
        local function exchange(prefix, distance, low, high)
            local out = {}
            for i = 0, lanes - 1 do
                local upper = i // distance % 2 == 1
                local a, b = rows[(upper and i - distance or i) + 1], rows[(upper and i or i + distance) + 1]
                out[i + 1] = prefix .. i
                steps[#steps + 1] = { name = out[i + 1], value = (upper and high or low)(a, b) }
            end
            rows = out
        end
        local function pairs64(word)
            return function(a, b)
                local function doubles(v) return call("svreinterpret_f64_f32", v) end
                return call("svreinterpret_f32_f64", call("svtrn" .. word .. "_f64", doubles(a), doubles(b)))
            end
        end
        exchange(
            "pair",
            1,
            function(a, b) return call("svtrn1_f32", a, b) end,
            function(a, b) return call("svtrn2_f32", a, b) end
        )
        exchange(lanes > 4 and "quad" or "column", 2, pairs64(1), pairs64(2))
        if lanes > 4 then
            local quad, others = first(4), call("sveor_n_u32_x", all, "svindex_u32(0, 1)", 4)
            local function swapped(v) return call("svtbl_f32", v, others) end
            exchange(
                "column",
                4,
                function(a, b) return call("svsel_f32", quad, a, swapped(b)) end,
                function(a, b) return call("svsel_f32", quad, swapped(a), b) end
            )
        end
        return steps, rows
    end

    function sve.reduce(v, word) return {}, call(word == "max" and "svmaxv_f32" or "svaddv_f32", all, v) end

    return sve
end
