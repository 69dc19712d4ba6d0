-- SVE: 4 lanes, the first 128 bits of vectors of any length; 32 registers.
--
-- A vector's other lanes are not touched: every word works under the predicate of four lanes, which all lengths from
-- 128 bits on have. Panels of weights and rows of tables are short, so that longer vectors would mostly wait for
-- memory.

local dtype = require "gen.plan.dtype"
local expression = require "gen.isa.expression"

local at, call = expression.address, expression.call
local function first(n) return "svptrue_pat_b32(SV_VL" .. n .. ")" end
local four = first(4)
local function f32(word, ...) return call("sv" .. word .. "_f32_x", four, ...) end

local sve = {
    name = "sve",
    any_alignment = true,
    lanes = 4,
    registers = 32,
    l2_bytes = 256 << 10,
    sizeless = true,
    flags = {},
    guard = "defined(__ARM_FEATURE_SVE)",
    includes = { "<arm_sve.h>" },
    vector = "svfloat32_t",
    index = "svuint32_t",
    mask = "svbool_t",
    target = "aarch64-sve",
}

function sve.zero() return "svdup_n_f32(0.0f)" end
function sve.broadcast(s) return call("svdup_n_f32", s) end
function sve.load_partial(base, offset, n) return call("svld1_f32", first(n), at(base, offset)) end
function sve.load(base, offset) return sve.load_partial(base, offset, 4) end
sve.load_unaligned = sve.load
function sve.store_partial(base, offset, n, v) return call("svst1_f32", first(n), at(base, offset), v) end
function sve.store(base, offset, v) return sve.store_partial(base, offset, 4, v) end
sve.store_unaligned = sve.store
for _, word in ipairs { "add", "sub", "mul", "div", "max" } do
    sve[word] = function(a, b) return f32(word, a, b) end
end
function sve.abs(v) return f32("abs", v) end
function sve.fma(a, b, c) return f32("mla", c, a, b) end
function sve.reciprocal_root(v) return f32("div", "svdup_n_f32(1.0f)", f32("sqrt", v)) end
function sve.round_negative(v) return f32("rintn", v) end
function sve.power_of_two(n)
    return call(
        "svreinterpret_f32_s32",
        call("svlsl_n_s32_x", four, call("svadd_n_s32_x", four, call("svcvt_s32_f32_x", four, n), "127"), "23")
    )
end
function sve.index_zero() return "svdup_n_u32(0)" end
function sve.index_broadcast(n) return call("svdup_n_u32", n) end
function sve.index_or_if_positive(index, z, bit)
    return call("svorr_n_u32_m", call("svcmpgt_n_f32", four, z, "0.0f"), index, bit)
end
function sve.index_store(base, offset, index) return call("svst1h_u32", four, at(base, offset), index) end

local function upper_half(v) return call("svreinterpret_f32_u32", call("svlsl_n_u32_x", four, v, "16")) end
function sve.load_partial_bf16(base, n) return upper_half(call("svld1uh_u32", first(n), base)) end
function sve.load_partial_f16(base, n)
    return call("svcvt_f32_f16_x", four, call("svreinterpret_f16_u32", call("svld1uh_u32", first(n), base)))
end
function sve.load_partial_i8(base, n) return call("svcvt_f32_s32_x", four, call("svld1sb_s32", first(n), base)) end
-- fp8 with the sign extended, moved to where half precision has fraction and exponent; of the copies of the sign only
-- the first one is left. The exponent's bias is larger by 8: 1/256 of each number, exactly.
function sve.load_partial_e4m3(base, n)
    local bytes = call("svld1sb_s32", first(n), expression.cast("const int8_t *", base))
    local halves = call("svlsl_n_u32_x", four, call("svreinterpret_u32_s32", bytes), 7)
    return call("svcvt_f32_f16_x", four, call("svreinterpret_f16_u32", call("svand_n_u32_x", four, halves, "0xbf80u")))
end
for _, type in ipairs(dtype.loaded_names) do
    sve["load_" .. type] = function(base) return sve["load_partial_" .. type](base, 4) end
end
function sve.load_words_partial(base, offset, n) return call("svld1_u32", first(n), at(base, offset)) end
function sve.load_words(base, offset) return sve.load_words_partial(base, offset, 4) end
function sve.unpack_bf16(words)
    return { upper_half(words), call("svreinterpret_f32_u32", call("svand_n_u32_x", four, words, "0xffff0000u")) }
end

-- Pairs of rows, then pairs of pairs: both stay in their 128 bits.
function sve.transpose(r)
    local function trn(word, a, b) return call("svtrn" .. word .. "_f32", a, b) end
    local function pairs64(word, a, b)
        return call(
            "svreinterpret_f32_f64",
            call("svtrn" .. word .. "_f64", call("svreinterpret_f64_f32", a), call("svreinterpret_f64_f32", b))
        )
    end
    return {
        { name = "even01", value = trn(1, r[1], r[2]) },
        { name = "odd01", value = trn(2, r[1], r[2]) },
        { name = "even23", value = trn(1, r[3], r[4]) },
        { name = "odd23", value = trn(2, r[3], r[4]) },
        { name = "column0", value = pairs64(1, "even01", "even23") },
        { name = "column1", value = pairs64(1, "odd01", "odd23") },
        { name = "column2", value = pairs64(2, "even01", "even23") },
        { name = "column3", value = pairs64(2, "odd01", "odd23") },
    }, { "column0", "column1", "column2", "column3" }
end

function sve.reduce(v, word) return {}, call(word == "max" and "svmaxv_f32" or "svaddv_f32", four, v) end

return sve
