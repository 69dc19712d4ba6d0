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

local function pairs_of(words) return expression.cast("__m512bh", words) end
function set.dot_bf16(sum, a, b) return expression.call("_mm512_dpbf16_ps", sum, pairs_of(a), pairs_of(b)) end
function set.store_bf16(base, offset, a, b)
    local halves = expression.call("_mm512_cvtne2ps_pbh", b, a)
    return set.store_words(base, offset, expression.cast("__m512i", halves))
end

return set
