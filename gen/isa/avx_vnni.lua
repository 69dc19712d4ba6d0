-- AVX2 with AVX-VNNI, of CPUs without AVX-512: sums rows of i8 as integers, and multiplies by weights in i8 and i16, by
-- products of bytes and of 16-bit integers. Else the same as AVX2.

local expression = require "gen.isa.expression"
local interleave = require "gen.isa.x86_quads"
local avx2 = require "gen.isa.avx2"

local at = expression.address
local function call(name, ...) return expression.call("_mm256_" .. name, ...) end

local set = {}
for key, value in pairs(avx2) do
    set[key] = value
end

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
        name = "avx_vnni_load_first",
        text = [[
/* The first n bytes, at most 8, and zeros. */
static inline long long $avx_vnni_eight(const int8_t *from, unsigned n)
{
    uint64_t word = 0;
    for (unsigned k = 0; k < n && k < 8; ++k)
        word |= (uint64_t) (uint8_t) from[k] << 8 * k;
    return (long long) word;
}

/* The first n bytes, below 32, and zeros. */
static inline __m256i $avx_vnni_load_first(const int8_t *from, unsigned n)
{
    const long long second = n > 8 ? $avx_vnni_eight(from + 8, n - 8) : 0;
    const long long third = n > 16 ? $avx_vnni_eight(from + 16, n - 16) : 0;
    const long long fourth = n > 24 ? $avx_vnni_eight(from + 24, n - 24) : 0;
    return _mm256_set_epi64x(fourth, third, second, $avx_vnni_eight(from, n));
}]],
    },
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
    {
        name = "avx_vnni_largest",
        text = [[
static inline float $avx_vnni_largest(__m256 v)
{
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}]],
    },
    {
        name = "avx_vnni_total",
        text = [[
static inline float $avx_vnni_total(__m256 v)
{
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}]],
    },
} do
    row.includes, row.guard = set.includes, set.guard
    set.helpers[#set.helpers + 1] = row
end

function set.dot_i16(sum, a, b) return call("dpwssd_avx_epi32", sum, a, b) end
function set.dot_i8(sum, a, b) return call("dpbusd_avx_epi32", sum, a, b) end

local function masked(v, mask) return call("and_si256", v, call("set1_epi32", mask)) end
local function left(v, bits) return call("slli_epi32", v, tostring(bits)) end
set.type_needs = {
    i8 = {
        flags = { "-mavxvnni" },
        feature = "avxvnni",
        -- As gen/isa/avx512.lua has them.
        gather_i8 = {
            rows = 4,
            columns = 32,
            vectors = 8,
            load = set.load_words,
            load_partial = function(base, offset, n)
                return expression.call("$avx_vnni_load_first", at(base, offset), n)
            end,
            broadcast = function(word) return call("set1_epi32", expression.cast("int", word)) end,
            dot = set.dot_i8,
            join = function(high, low) return call("add_epi32", left(high, 8), low) end,
            interleave = interleave(call),
            order = function(v)
                local function halves(a, b, which) return call("permute2f128_ps", a, b, which) end
                return {},
                    {
                        halves(v[1], v[2], "0x20"),
                        halves(v[3], v[4], "0x20"),
                        halves(v[1], v[2], "0x31"),
                        halves(v[3], v[4], "0x31"),
                    }
            end,
            round = function(v) return call("cvtps_epi32", v) end,
            upper_bytes = function(q)
                return {
                    call("srli_epi32", q[1], "8"),
                    masked(q[2], "0xff00"),
                    left(masked(q[3], "0xff00"), 8),
                    left(masked(q[4], "0xff00"), 16),
                }
            end,
            lower_bytes = function(q)
                return {
                    masked(q[1], "0xff"),
                    left(masked(q[2], "0xff"), 8),
                    left(masked(q[3], "0xff"), 16),
                    left(q[4], 24),
                }
            end,
            unite = function(bytes)
                return call("or_si256", call("or_si256", bytes[1], bytes[2]), call("or_si256", bytes[3], bytes[4]))
            end,
            store_upper_bytes = function(base, offset, q)
                return expression.call("$avx_vnni_store_bytes", at(base, offset), call("srli_epi32", q, "8"))
            end,
            store_lower_bytes = function(base, offset, q)
                return expression.call("$avx_vnni_store_bytes", at(base, offset), masked(q, "0xff"))
            end,
            largest = function(v) return expression.call("$avx_vnni_largest", v) end,
            total = function(v) return expression.call("$avx_vnni_total", v) end,
        },
    },
}
for type, needs in pairs(avx2.type_needs) do
    set.type_needs[type] = needs
end

return set
