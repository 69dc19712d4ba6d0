-- The vector extension 1.0 of RISC-V (V): 4 lanes, the first 128 bits of registers of any length from there on; 32
-- registers.
--
-- Every word has a vector length of its own, four or fewer: panels of weights and rows of tables are short, so that
-- longer vectors would mostly wait for memory.

local dtype = require "gen.plan.dtype"
local expression = require "gen.isa.expression"

local at = expression.sum
local function call(name, ...) return expression.call("__riscv_" .. name, ...) end

local rvv = {
    name = "rvv",
    any_alignment = true,
    lanes = 4,
    registers = 32,
    l2_bytes = 256 << 10,
    sizeless = true,
    flags = {},
    guard = "defined(__riscv_v_min_vlen) && __riscv_v_min_vlen >= 128",
    includes = { "<riscv_vector.h>" },
    vector = "vfloat32m1_t",
    index = "vuint32m1_t",
    mask = "vbool32_t",
    target = "rv64gcv",
}

function rvv.zero() return call("vfmv_v_f_f32m1", "0.0f", 4) end
function rvv.broadcast(s) return call("vfmv_v_f_f32m1", s, 4) end
-- The first n elements from `base` on, zeros behind them: what a load leaves of a vector is any bits.
local function first(load, zeros, base, n)
    if n == 4 then return call(load, base, n) end
    return call(load .. "_tu", zeros, base, n)
end
function rvv.load_partial(base, offset, n) return first("vle32_v_f32m1", rvv.zero(), at(base, offset), n) end
function rvv.load(base, offset) return rvv.load_partial(base, offset, 4) end
rvv.load_unaligned = rvv.load
function rvv.store_partial(base, offset, n, v) return call("vse32_v_f32m1", at(base, offset), v, n) end
function rvv.store(base, offset, v) return rvv.store_partial(base, offset, 4, v) end
rvv.store_unaligned = rvv.store
for _, word in ipairs { "add", "sub", "mul", "div" } do
    rvv[word] = function(a, b) return call("vf" .. word .. "_vv_f32m1", a, b, 4) end
end
function rvv.max(a, b) return call("vmerge_vvm_f32m1", b, a, call("vmfgt_vv_f32m1_b32", a, b, 4), 4) end
function rvv.abs(v) return call("vfabs_v_f32m1", v, 4) end
function rvv.fma(a, b, c) return call("vfmacc_vv_f32m1", c, a, b, 4) end
function rvv.reciprocal_root(v) return rvv.div(call("vfsqrt_v_f32m1", v, 4), v) end
function rvv.round_negative(v) return call("vfcvt_f_x_v_f32m1", call("vfcvt_x_f_v_i32m1", v, 4), 4) end
-- n is whole, so that any rounding mode does: QEMU 7.2 crashes on vfcvt.rtz at the start of a page of code.
function rvv.power_of_two(n)
    return call(
        "vreinterpret_v_i32m1_f32m1",
        call("vsll_vx_i32m1", call("vadd_vx_i32m1", call("vfcvt_x_f_v_i32m1", n, 4), 127, 4), 23, 4)
    )
end
function rvv.index_zero() return call("vmv_v_x_u32m1", 0, 4) end
function rvv.index_broadcast(n) return call("vmv_v_x_u32m1", n, 4) end
function rvv.index_or_if_positive(index, z, bit)
    return call("vor_vx_u32m1_mu", call("vmfgt_vf_f32m1_b32", z, "0.0f", 4), index, index, bit, 4)
end
function rvv.index_store(base, offset, index)
    return call("vse16_v_u16mf2", at(base, offset), call("vncvt_x_x_w_u16mf2", index, 4), 4)
end

local function upper_half(v) return call("vreinterpret_v_u32m1_f32m1", call("vsll_vx_u32m1", v, 16, 4)) end
local function halves(base, n)
    return call("vzext_vf2_u32m1", first("vle16_v_u16mf2", call("vmv_v_x_u16mf2", 0, 4), base, n), 4)
end
function rvv.load_partial_bf16(base, n) return upper_half(halves(base, n)) end
function rvv.load_partial_i8(base, n)
    return call(
        "vfcvt_f_x_v_f32m1",
        call("vsext_vf4_i32m1", first("vle8_v_i8mf4", call("vmv_v_x_i8mf4", 0, 4), base, n), 4),
        4
    )
end
-- Exponent and fraction as those of a float32 that is 2^112 times smaller, then scaled: exact, subnormal ones, too.
function rvv.load_partial_f16(base, n)
    local magnitude = call(
        "vreinterpret_v_u32m1_f32m1",
        call("vsll_vx_u32m1", call("vand_vx_u32m1", halves(base, n), "0x7fffu", 4), 13, 4)
    )
    local sign = call("vreinterpret_v_u32m1_f32m1", call("vsll_vx_u32m1", halves(base, n), 16, 4))
    return call("vfsgnj_vv_f32m1", call("vfmul_vf_f32m1", magnitude, "0x1p+112f", 4), sign, 4)
end
-- fp8 with the sign extended, moved to where a float32 has fraction and exponent; of the copies of the sign only the
-- first one is left. The exponent's bias is larger by 120: 2^112 times that is 1/256 of each number, exactly, also of 0
-- and subnormal ones.
function rvv.load_partial_e4m3(base, n)
    local from = expression.cast("const int8_t *", base)
    local bytes = call("vsext_vf4_i32m1", first("vle8_v_i8mf4", call("vmv_v_x_i8mf4", 0, 4), from, n), 4)
    local moved = call("vsll_vx_u32m1", call("vreinterpret_v_i32m1_u32m1", bytes), 20, 4)
    local float = call("vreinterpret_v_u32m1_f32m1", call("vand_vx_u32m1", moved, "0x87f00000u", 4))
    return call("vfmul_vf_f32m1", float, "0x1p+112f", 4)
end
for _, type in ipairs(dtype.loaded_names) do
    local partial = rvv["load_partial_" .. type]
    rvv["load_" .. type] = partial and function(base) return partial(base, 4) end
end
function rvv.load_words_partial(base, offset, n)
    local address = at(base, offset)
    return first("vle32_v_u32m1", rvv.index_zero(), address, n)
end
function rvv.load_words(base, offset) return rvv.load_words_partial(base, offset, 4) end
function rvv.unpack_bf16(words)
    return { upper_half(words), call("vreinterpret_v_u32m1_f32m1", call("vand_vx_u32m1", words, "0xffff0000u", 4)) }
end
rvv.unpack_i4, rvv.unpack_i8 = expression.unpacked(function(words, mask, right)
    local last = right and call("vsrl_vx_u32m1", words, right, 4)
    return call("vfcvt_f_xu_v_f32m1", last or call("vand_vx_u32m1", words, mask .. "u", 4), 4)
end)

-- Column by column: the lane of each row is moved to the front, then the rows' behind each other.
function rvv.transpose(r)
    local steps, out = {}, {}
    local function lane(row, c) return c == 0 and row or call("vslidedown_vx_f32m1", row, c, 4) end
    for c = 0, 3 do
        local column = lane(r[1], c)
        for i = 1, 3 do
            column = call("vslideup_vx_f32m1", column, lane(r[i + 1], c), i, 4)
        end
        steps[#steps + 1], out[#out + 1] = { name = "column" .. c, value = column }, "column" .. c
    end
    return steps, out
end

function rvv.reduce(v, word)
    local start = word == "max" and v or rvv.zero()
    return {},
        call(
            "vfmv_f_s_f32m1_f32",
            call(word == "max" and "vfredmax_vs_f32m1_f32m1" or "vfredusum_vs_f32m1_f32m1", v, start, 4)
        )
end

return rvv
