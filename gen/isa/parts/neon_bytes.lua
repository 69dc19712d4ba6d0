-- NEON with products of bytes: sums rows of i8 as integers, and multiplies by weights in i8. Else the same as NEON.

local byte_scores = require "gen.isa.parts.byte_scores"
local copied = require "gen.schema.copied"
local expression = require "gen.isa.expression"
local neon = require "gen.isa.neon"
local nibbles = require "gen.isa.parts.nibbles"

local at, call = expression.sum, expression.call

-- What such instruction sets share beside the products. As in gen/isa/neon.lua.
local shared = {
    {
        name = "neon_load_first",
        text = [[
/* The first n bytes, below 16, and zeros. */
static inline uint32x4_t $neon_load_first(const int8_t *from, unsigned n)
{
    const uint8_t *byte = (const uint8_t *) from;
    const unsigned whole = n & 8u;
    uint64_t rest = 0;
    for (unsigned k = whole; k < n; ++k)
        rest |= (uint64_t) byte[k] << 8 * (k - whole);
    const uint8x8_t part = vcreate_u8(rest);
    return vreinterpretq_u32_u8(whole ? vcombine_u8(vld1_u8(byte), part) : vcombine_u8(part, vcreate_u8(0)));
}]],
    },
    {
        name = "neon_store_bytes",
        text = [[
/* The lowest byte of each word. */
static inline void $neon_store_bytes(void *to, uint32x4_t words)
{
    const uint16x4_t halves = vmovn_u32(words);
    const uint8x8_t bytes = vmovn_u16(vcombine_u16(halves, halves));
    *($neon_bytes *) to = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
}]],
    },
}
for _, row in ipairs(shared) do
    row.includes, row.guard = neon.includes, neon.guard
end

-- Two vectors of words zipped as elements of `bits` bits; part: 1 or 2, their lower or upper halves.
local function zip(part, bits, a, b)
    local type = "u" .. bits
    local function elements(v) return call("vreinterpretq_" .. type .. "_u32", v) end
    return call("vreinterpretq_u32_" .. type, call("vzip" .. part .. "q_" .. type, elements(a), elements(b)))
end
local function zip_floats(a, b) return { call("vzip1q_f32", a, b), call("vzip2q_f32", a, b) } end
local function left(v, bits) return call("vshlq_n_u32", v, bits) end
local function masked(v, mask) return call("vandq_u32", v, call("vdupq_n_u32", mask)) end

-- The words of an integer gather, as gen/isa/avx512.lua has them, with the product `dot(sum, scores, rows)`.
local function gather_with(dot)
    local words = {
        rows = 4,
        columns = 16,
        load = neon.load_words,
        load_partial = function(base, offset, n) return call("$neon_load_first", at(base, offset), n) end,
        broadcast = function(word) return call("vdupq_n_u32", word) end,
        interleave = function(row)
            local steps = {}
            for half = 0, 1 do
                for part = 1, 2 do
                    local value = zip(part, 8, row[2 * half + 1], row[2 * half + 2])
                    steps[#steps + 1] = { name = "pair" .. #steps, value = value }
                end
            end
            return steps,
                {
                    zip(1, 16, "pair0", "pair2"),
                    zip(2, 16, "pair0", "pair2"),
                    zip(1, 16, "pair1", "pair3"),
                    zip(2, 16, "pair1", "pair3"),
                }
        end,
        order = function(v) return {}, v end,
        round = function(v) return call("vreinterpretq_u32_s32", call("vcvtnq_s32_f32", v)) end,
        unite = function(bytes)
            return call("vorrq_u32", call("vorrq_u32", bytes[1], bytes[2]), call("vorrq_u32", bytes[3], bytes[4]))
        end,
    }
    byte_scores.two(words, {
        left = left,
        right = function(v, bits) return call("vshrq_n_u32", v, bits) end,
        masked = function(v, mask) return masked(v, mask .. "u") end,
        add = function(a, b) return call("vaddq_u32", a, b) end,
        store = function(base, offset, q) return call("$neon_store_bytes", at(base, offset), q) end,
        dot = dot,
    })
    return words
end

-- An instruction set of that kind: name, the compiler's word for it, the macro that says it is switched on, the field
-- of an ID register, the emulator's CPU; dots: helpers of its products, { name, text }, that of words first, then that
-- of rows of tables, which may be the same.
return function(row)
    local set = copied(neon)
    local function product(helper)
        return function(sum, a, b) return call("$" .. helper.name, sum, a, b) end
    end
    set.name = row.name
    set.flags = { "-march=armv8.2-a+" .. row.name }
    set.attributes = { gcc = "arch=armv8.2-a+" .. row.name, clang = row.name, clang_major = 17 }
    set.guard = "defined(" .. row.macro .. ")"
    set.cpu = { row.field }
    set.emulator = { "qemu-aarch64-static", "-cpu", row.emulated }
    set.helpers = { table.unpack(neon.helpers) }
    table.move(shared, 1, #shared, #set.helpers + 1, set.helpers)
    for _, helper in ipairs(row.dots) do
        local own = { name = helper.name, text = helper.text, includes = set.includes, guard = set.guard }
        set.helpers[#set.helpers + 1] = own
    end
    set.dot_i8 = product(row.dots[1])
    local dot, tools = product(row.dots[#row.dots]), { left = left, masked = masked, zip = zip_floats }
    local gather = gather_with(dot)
    gather.nibbles = nibbles(gather, tools)
    gather.bytes.nibbles = nibbles(gather.bytes, tools)
    set.type_needs = { i8 = { flags = set.flags, feature = row.name, integer_sums = gather } }
    return set
end
