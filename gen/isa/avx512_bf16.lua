-- AVX-512 with BF16: multiplies inputs in bf16 by weights in bf16, two of each at a time. Else the same as AVX-512.

local copied = require "gen.schema.copied"
local expression = require "gen.isa.expression"
local avx512 = require "gen.isa.avx512"

local set = copied(avx512)

set.name = "avx512_bf16"
set.serves = { "bf16_products" }
set.flags = { table.unpack(avx512.flags) }
set.flags[#set.flags + 1] = "-mavx512bf16"
set.guard = avx512.guard .. " && defined(__AVX512BF16__)"
set.cpu = { leaf7_1_eax = 1 << 5 } -- and what AVX-512 needs
for key, bits in pairs(avx512.cpu) do
    set.cpu[key] = bits
end

set.always = { leaf7_ecx = 1 << 11 } -- VNNI

local function pairs_of(words) return expression.cast("__m512bh", words) end
function set.dot_bf16(sum, a, b) return expression.call("_mm512_dpbf16_ps", sum, pairs_of(a), pairs_of(b)) end
function set.store_bf16(base, offset, a, b)
    local halves = expression.call("_mm512_cvtne2ps_pbh", b, a)
    return set.store_words(base, offset, expression.cast("__m512i", halves))
end

-- Converts the numbers of both at once, then brings those of a word together.
set.helpers = { table.unpack(avx512.helpers) }
table.insert(set.helpers, {
    name = "avx512_bf16_pair",
    includes = set.includes,
    guard = set.guard,
    text = [[
/* Words of a and b, rounded to bf16, a in the low bits. */
static inline __m512i $avx512_bf16_pair(__m512 a, __m512 b)
{
    const __m512i order = _mm512_setr_epi32(0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006,
        0x170007, 0x180008, 0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f);
    return _mm512_permutexvar_epi16(order, (__m512i) _mm512_cvtne2ps_pbh(b, a));
}]],
})
function set.pack_bf16(a, b) return expression.call("$avx512_bf16_pair", a, b) end

return set
