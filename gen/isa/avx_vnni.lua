-- AVX2 with AVX-VNNI, of CPUs without AVX-512: sums rows of i8 as integers, and multiplies by weights in i8 and i16, by
-- products of bytes and of 16-bit integers. Else the same as AVX2.

local avx2 = require "gen.isa.avx2"
local byte_scores = require "gen.isa.parts.byte_scores"
local copied = require "gen.schema.copied"
local expression = require "gen.isa.expression"

local at = expression.sum
local function call(name, ...) return expression.call("_mm256_" .. name, ...) end

local set = copied(avx2)

set.name = "avx_vnni"
set.serves = { "i8", "i16" }
set.flags = { table.unpack(avx2.flags) }
set.flags[#set.flags + 1] = "-mavxvnni"
set.guard = avx2.guard .. " && defined(__AVXVNNI__)"
set.cpu = { leaf7_1_eax = 1 << 4 } -- and what AVX2 needs
for key, bits in pairs(avx2.cpu) do
    set.cpu[key] = bits
end

set.helpers = { table.unpack(avx2.helpers) }
for _, row in ipairs {
    {
        name = "avx_vnni_store_bytes",
        text = [[
/* The lowest byte of each word, the others of which are zeros. */
static inline void $avx_vnni_store_bytes(void *to, __m256i words)
{
    const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storel_epi64((__m128i *) to, _mm_packus_epi16(halves, halves));
}]],
    },
} do
    row.includes, row.guard = set.includes, set.guard
    set.helpers[#set.helpers + 1] = row
end

function set.dot_i16(sum, a, b) return call("dpwssd_avx_epi32", sum, a, b) end
function set.dot_i8(sum, a, b) return call("dpbusd_avx_epi32", sum, a, b) end
-- dot_i16 and dot_i8 are one instruction
set.dot_i7, set.dot_two_i7, set.dot_s8, set.products_at_once = nil, nil, nil, nil
set.dot_b8, set.dot_halves, set.add_halves = nil, nil, nil

local gather = copied(avx2.integer_sums)
byte_scores.two(gather, {
    left = function(v, bits) return call("slli_epi32", v, tostring(bits)) end,
    right = function(v, bits) return call("srli_epi32", v, tostring(bits)) end,
    masked = function(v, mask) return call("and_si256", v, call("set1_epi32", mask)) end,
    add = function(a, b) return call("add_epi32", a, b) end,
    store = function(base, offset, q) return expression.call("$avx_vnni_store_bytes", at(base, offset), q) end,
    masks = true,
    dot = set.dot_i8,
})
gather.bytes.nibbles = avx2.integer_sums.bytes.nibbles

set.type_needs = { i8 = { flags = { "-mavxvnni" }, feature = "avxvnni", integer_sums = gather } }
for type, needs in pairs(avx2.type_needs) do
    set.type_needs[type] = needs
end

return set
