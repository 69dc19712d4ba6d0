/* AVX-512 with VNNI and BF16 by AVX2: the intrinsics that lookupc prints, by their meaning: halves by AVX2 where these
   do not mix, else lane by lane. Included before all else (-include), with the flags of AVX2. */

/* All that gcc's <immintrin.h> includes but AVX-512. */
#define _IMMINTRIN_H_INCLUDED
#include <smmintrin.h>
/* In this order: */
#include <avxintrin.h>
/**/
#include <avx2intrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>

#include <stdint.h>

/* What the emitted files ask for. */
#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1
#define __AVX512VNNI__ 1
#define __AVX512BF16__ 1

typedef float __m512 __attribute__((vector_size(64), may_alias));
typedef long long __m512i __attribute__((vector_size(64), may_alias));
typedef short __m512bh __attribute__((vector_size(64), may_alias));
typedef uint16_t __mmask16;
typedef uint64_t __mmask64;

typedef union {
    __m512 floats;
    __m512i integers;
    __m512bh bf16;
    __m256 half[2];
    __m256i integer_half[2];
    float f[16];
    int32_t i[16];
    uint32_t u[16];
    int64_t quads[8];
    uint16_t words[32];
    int16_t signed_words[32];
    uint8_t bytes[64];
    int8_t signed_bytes[64];
} stand_in_v;

#define FLOATS_1(name)                                                                                                                     \
    static inline __m512 _mm512_##name(__m512 a)                                                                                           \
    {                                                                                                                                      \
        stand_in_v x = {a};                                                                                                                \
        for (int n = 0; n < 2; ++n)                                                                                                        \
            x.half[n] = _mm256_##name(x.half[n]);                                                                                          \
        return x.floats;                                                                                                                   \
    }
#define FLOATS_2(name)                                                                                                                     \
    static inline __m512 _mm512_##name(__m512 a, __m512 b)                                                                                 \
    {                                                                                                                                      \
        stand_in_v x = {a}, y = {b};                                                                                                       \
        for (int n = 0; n < 2; ++n)                                                                                                        \
            x.half[n] = _mm256_##name(x.half[n], y.half[n]);                                                                               \
        return x.floats;                                                                                                                   \
    }
#define INTEGERS_2(name, of_256)                                                                                                           \
    static inline __m512i _mm512_##name(__m512i a, __m512i b)                                                                              \
    {                                                                                                                                      \
        stand_in_v x = {.integers = a}, y = {.integers = b};                                                                               \
        for (int n = 0; n < 2; ++n)                                                                                                        \
            x.integer_half[n] = of_256(x.integer_half[n], y.integer_half[n]);                                                              \
        return x.integers;                                                                                                                 \
    }
#define FOR_LANES(count) for (int n = 0; n < (count); ++n)

FLOATS_1(sqrt_ps)
FLOATS_2(add_ps)
FLOATS_2(sub_ps)
FLOATS_2(mul_ps)
FLOATS_2(div_ps)
FLOATS_2(max_ps)
FLOATS_2(min_ps)
FLOATS_2(unpacklo_ps)
FLOATS_2(unpackhi_ps)
INTEGERS_2(add_epi32, _mm256_add_epi32)
INTEGERS_2(sub_epi32, _mm256_sub_epi32)
INTEGERS_2(max_epi32, _mm256_max_epi32)
INTEGERS_2(and_si512, _mm256_and_si256)
INTEGERS_2(or_si512, _mm256_or_si256)
INTEGERS_2(xor_si512, _mm256_xor_si256)
INTEGERS_2(sllv_epi32, _mm256_sllv_epi32)
INTEGERS_2(packs_epi16, _mm256_packs_epi16)
INTEGERS_2(packs_epi32, _mm256_packs_epi32)
INTEGERS_2(packus_epi32, _mm256_packus_epi32)
INTEGERS_2(unpacklo_epi8, _mm256_unpacklo_epi8)
INTEGERS_2(unpackhi_epi8, _mm256_unpackhi_epi8)
INTEGERS_2(unpacklo_epi16, _mm256_unpacklo_epi16)
INTEGERS_2(unpackhi_epi16, _mm256_unpackhi_epi16)
INTEGERS_2(unpacklo_epi64, _mm256_unpacklo_epi64)
INTEGERS_2(unpackhi_epi64, _mm256_unpackhi_epi64)

static inline __m512 _mm512_castsi512_ps(__m512i a)
{
    return (__m512)a;
}
static inline __m512i _mm512_castps_si512(__m512 a)
{
    return (__m512i)a;
}
static inline __m256i _mm512_castsi512_si256(__m512i a)
{
    return ((stand_in_v){.integers = a}).integer_half[0];
}
static inline __m256i _mm512_extracti64x4_epi64(__m512i a, int half)
{
    return ((stand_in_v){.integers = a}).integer_half[half];
}

static inline __m512 _mm512_setzero_ps(void)
{
    return (__m512){0};
}
static inline __m512i _mm512_setzero_si512(void)
{
    return (__m512i){0};
}
static inline __m512 _mm512_set1_ps(float a)
{
    return (__m512){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a};
}
static inline __m512i _mm512_set4_epi32(int d, int c, int b, int a)
{
    stand_in_v x = {.i = {a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d}};
    return x.integers;
}
static inline __m512i _mm512_set1_epi32(int a)
{
    return _mm512_set4_epi32(a, a, a, a);
}
#define _mm512_setr_ps(...) ((__m512){__VA_ARGS__})
#define _mm512_setr_epi32(...) (((stand_in_v){.i = {__VA_ARGS__}}).integers)
#define _mm512_setr_epi64(...) ((__m512i){__VA_ARGS__})

static inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c)
{
    stand_in_v x = {a}, y = {b}, z = {c};
    FOR_LANES(2) x.half[n] = _mm256_fmadd_ps(x.half[n], y.half[n], z.half[n]);
    return x.floats;
}
static inline __m512 _mm512_abs_ps(__m512 a)
{
    stand_in_v x = {a};
    FOR_LANES(16) x.u[n] &= 0x7fffffffu;
    return x.floats;
}
static inline __m512i _mm512_srai_epi32(__m512i a, int count)
{
    stand_in_v x = {.integers = a};
    FOR_LANES(2) x.integer_half[n] = _mm256_srai_epi32(x.integer_half[n], count);
    return x.integers;
}
static inline __m512i _mm512_slli_epi16(__m512i a, int count)
{
    stand_in_v x = {.integers = a};
    FOR_LANES(2) x.integer_half[n] = _mm256_slli_epi16(x.integer_half[n], count);
    return x.integers;
}
static inline __m512i _mm512_srli_epi16(__m512i a, int count)
{
    stand_in_v x = {.integers = a};
    FOR_LANES(2) x.integer_half[n] = _mm256_srli_epi16(x.integer_half[n], count);
    return x.integers;
}
static inline __m512i _mm512_slli_epi32(__m512i a, unsigned count)
{
    stand_in_v x = {.integers = a};
    FOR_LANES(16) x.u[n] = count < 32 ? x.u[n] << count : 0;
    return x.integers;
}
static inline __m512i _mm512_srli_epi32(__m512i a, unsigned count)
{
    stand_in_v x = {.integers = a};
    FOR_LANES(16) x.u[n] = count < 32 ? x.u[n] >> count : 0;
    return x.integers;
}

/* Memory. A lane outside of a mask is neither read nor written; loads make it 0. */
static inline void stand_in_copy(void *to, const void *from, unsigned bytes)
{
    for (unsigned n = 0; n < bytes; ++n)
        ((char *)to)[n] = ((const char *)from)[n];
}
#define LOAD_MASKED(type, name, mask_type, width)                                                                                          \
    static inline type name(mask_type mask, const void *from)                                                                              \
    {                                                                                                                                      \
        type to = {0};                                                                                                                     \
        FOR_LANES((int)sizeof to / width)                                                                                                  \
        {                                                                                                                                  \
            if (mask >> n & 1)                                                                                                             \
                stand_in_copy((char *)&to + width * n, (const char *)from + width * n, width);                                             \
        }                                                                                                                                  \
        return to;                                                                                                                         \
    }
LOAD_MASKED(__m512, _mm512_maskz_loadu_ps, __mmask16, 4)
LOAD_MASKED(__m512i, _mm512_maskz_loadu_epi32, __mmask16, 4)
LOAD_MASKED(__m512i, _mm512_maskz_loadu_epi8, __mmask64, 1)
LOAD_MASKED(__m256i, _mm256_maskz_loadu_epi16, __mmask16, 2)
LOAD_MASKED(__m128i, _mm_maskz_loadu_epi8, __mmask16, 1)
static inline __m512 _mm512_loadu_ps(const void *from)
{
    return _mm512_maskz_loadu_ps(0xffff, from);
}
static inline __m512i _mm512_loadu_si512(const void *from)
{
    return _mm512_maskz_loadu_epi32(0xffff, from);
}
static inline __m512 _mm512_load_ps(const void *from)
{
    return *(const __m512 *)from;
}
static inline void _mm512_store_ps(void *to, __m512 a)
{
    *(__m512 *)to = a;
}
static inline void _mm512_stream_ps(void *to, __m512 a)
{
    *(__m512 *)to = a;
}
static inline void _mm512_storeu_ps(void *to, __m512 a)
{
    stand_in_copy(to, &a, sizeof a);
}
static inline void _mm512_storeu_si512(void *to, __m512i a)
{
    stand_in_copy(to, &a, sizeof a);
}
static inline void _mm512_mask_storeu_ps(void *to, __mmask16 mask, __m512 a)
{
    FOR_LANES(16)
    {
        if (mask >> n & 1)
            stand_in_copy((char *)to + 4 * n, (const char *)&a + 4 * n, 4);
    }
}
static inline void _mm512_mask_storeu_epi32(void *to, __mmask16 mask, __m512i a)
{
    _mm512_mask_storeu_ps(to, mask, (__m512)a);
}

/* Conversions, of narrow types by halves. */
static inline __m512 _mm512_cvtepi32_ps(__m512i a)
{
    stand_in_v x = {.integers = a};
    FOR_LANES(2) x.half[n] = _mm256_cvtepi32_ps(x.integer_half[n]);
    return x.floats;
}
static inline __m512i _mm512_cvtps_epi32(__m512 a)
{
    stand_in_v x = {a};
    FOR_LANES(2) x.integer_half[n] = _mm256_cvtps_epi32(x.half[n]);
    return x.integers;
}
static inline __m512i _mm512_cvtepi8_epi32(__m128i a)
{
    return ((stand_in_v){.integer_half = {_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8))}}).integers;
}
static inline __m512i _mm512_cvtepu16_epi32(__m256i a)
{
    const __m128i high = _mm256_extracti128_si256(a, 1);
    return ((stand_in_v){.integer_half = {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)), _mm256_cvtepu16_epi32(high)}}).integers;
}
static inline __m512 _mm512_cvtph_ps(__m256i a)
{
    const __m128i high = _mm256_extracti128_si256(a, 1);
    return ((stand_in_v){.half = {_mm256_cvtph_ps(_mm256_castsi256_si128(a)), _mm256_cvtph_ps(high)}}).floats;
}
static inline __m256i _mm512_maskz_cvtps_ph(__mmask16 all, __m512 a, int nearest)
{
    const stand_in_v x = {a};
    (void)all, (void)nearest;
    return _mm256_set_m128i(_mm256_cvtps_ph(x.half[1], 0), _mm256_cvtps_ph(x.half[0], 0));
}
static inline __m256i _mm512_cvtepi32_epi16(__m512i a)
{
    stand_in_v x = {.integers = a};
    FOR_LANES(16) x.words[n] = (uint16_t)x.u[n];
    return x.integer_half[0];
}
static inline __m128i _mm512_cvtepi32_epi8(__m512i a)
{
    stand_in_v x = {.integers = a};
    FOR_LANES(16) x.bytes[n] = (uint8_t)x.u[n];
    return _mm256_castsi256_si128(x.integer_half[0]);
}
static inline __m128i _mm512_cvtsepi32_epi8(__m512i a)
{
    stand_in_v x = {.integers = a};
    FOR_LANES(16) x.signed_bytes[n] = (int8_t)(x.i[n] < -128 ? -128 : x.i[n] > 127 ? 127 : x.i[n]);
    return _mm256_castsi256_si128(x.integer_half[0]);
}
static inline uint16_t stand_in_bf16(uint32_t bits)
{
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 64);
    if (!(bits & 0x7f800000u)) /* the instruction takes denormals for 0 */
        return (uint16_t)(bits >> 16 & 0x8000u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
static inline __m512bh _mm512_cvtne2ps_pbh(__m512 a, __m512 b)
{
    const stand_in_v x = {a}, y = {b};
    stand_in_v to;
    FOR_LANES(16) to.words[n] = stand_in_bf16(y.u[n]), to.words[n + 16] = stand_in_bf16(x.u[n]);
    return to.bf16;
}

/* Masks. */
static inline __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int what)
{
    const stand_in_v x = {a}, y = {b};
    unsigned mask = 0;
    FOR_LANES(16)
    {
        const float l = x.f[n], r = y.f[n];
        const int is = what == _CMP_GT_OQ     ? l > r
                       : what == _CMP_LT_OQ   ? l < r
                       : what == _CMP_UNORD_Q ? l != l || r != r
                                              : (__builtin_trap(), 0);
        mask |= (unsigned)is << n;
    }
    return (__mmask16)mask;
}
static inline __mmask16 _mm512_test_epi32_mask(__m512i a, __m512i b)
{
    const stand_in_v x = {.integers = a & b};
    unsigned mask = 0;
    FOR_LANES(16) mask |= (unsigned)(x.i[n] != 0) << n;
    return (__mmask16)mask;
}
static inline __m512i _mm512_mask_blend_epi32(__mmask16 mask, __m512i a, __m512i b)
{
    stand_in_v x = {.integers = a}, y = {.integers = b};
    FOR_LANES(16) x.i[n] = mask >> n & 1 ? y.i[n] : x.i[n];
    return x.integers;
}
static inline __m512 _mm512_mask_blend_ps(__mmask16 mask, __m512 a, __m512 b)
{
    return (__m512)_mm512_mask_blend_epi32(mask, (__m512i)a, (__m512i)b);
}
static inline __m512i _mm512_mask_or_epi32(__m512i from, __mmask16 mask, __m512i a, __m512i b)
{
    return _mm512_mask_blend_epi32(mask, from, a | b);
}
static inline __m512i _mm512_mask_set1_epi32(__m512i from, __mmask16 mask, int a)
{
    return _mm512_mask_blend_epi32(mask, from, _mm512_set1_epi32(a));
}

/* Lanes in another order. */
static inline __m512i _mm512_shuffle_epi32(__m512i a, unsigned which)
{
    stand_in_v x = {.integers = a}, to;
    FOR_LANES(16) to.i[n] = x.i[n / 4 * 4 + (int)(which >> n % 4 * 2 & 3)];
    return to.integers;
}
static inline __m512 _mm512_shuffle_ps(__m512 a, __m512 b, unsigned which)
{
    stand_in_v x = {a}, y = {b}, to;
    FOR_LANES(16) to.f[n] = (n % 4 < 2 ? x.f : y.f)[n / 4 * 4 + (int)(which >> n % 4 * 2 & 3)];
    return to.floats;
}
static inline __m512i _mm512_shuffle_i64x2(__m512i a, __m512i b, unsigned which)
{
    stand_in_v x = {.integers = a}, y = {.integers = b}, to;
    FOR_LANES(8) to.quads[n] = (n < 4 ? x.quads : y.quads)[2 * (int)(which >> n / 2 * 2 & 3) + n % 2];
    return to.integers;
}
static inline __m512 _mm512_shuffle_f32x4(__m512 a, __m512 b, unsigned which)
{
    return (__m512)_mm512_shuffle_i64x2((__m512i)a, (__m512i)b, which);
}
static inline __m512 _mm512_permutex2var_ps(__m512 a, __m512i which, __m512 b)
{
    stand_in_v x = {a}, y = {b}, n_of = {.integers = which}, z;
    FOR_LANES(16)
    z.f[n] = (n_of.u[n] & 16 ? y : x).f[n_of.u[n] & 15];
    return z.floats;
}
static inline __m512i _mm512_permutexvar_epi32(__m512i which, __m512i a)
{
    stand_in_v at = {.integers = which}, x = {.integers = a}, to;
    FOR_LANES(16) to.i[n] = x.i[at.i[n] & 15];
    return to.integers;
}
static inline __m512i _mm512_permutexvar_epi16(__m512i which, __m512i a)
{
    stand_in_v at = {.integers = which}, x = {.integers = a}, to;
    FOR_LANES(32) to.words[n] = x.words[at.words[n] & 31];
    return to.integers;
}
static inline __m512i _mm512_permutexvar_epi64(__m512i which, __m512i a)
{
    stand_in_v at = {.integers = which}, x = {.integers = a}, to;
    FOR_LANES(8) to.quads[n] = x.quads[at.quads[n] & 7];
    return to.integers;
}
static inline __m512i _mm512_mask_shuffle_epi8(__m512i from, __mmask64 mask, __m512i a, __m512i which)
{
    stand_in_v x = {.integers = a}, at = {.integers = which}, to = {.integers = from};
    FOR_LANES(64)
    {
        if (mask >> n & 1)
            to.bytes[n] = at.bytes[n] & 0x80 ? 0 : x.bytes[n / 16 * 16 + (at.bytes[n] & 15)];
    }
    return to.integers;
}

/* Over all lanes, by halves. */
static inline float _mm512_reduce_add_ps(__m512 a)
{
    stand_in_v x = {a};
    for (int half = 8; half > 0; half /= 2)
        FOR_LANES(half) x.f[n] += x.f[n + half];
    return x.f[0];
}
static inline float _mm512_reduce_max_ps(__m512 a)
{
    stand_in_v x = {a};
    FOR_LANES(16) x.f[0] = x.f[n] > x.f[0] ? x.f[n] : x.f[0];
    return x.f[0];
}

/* VNNI and BF16. */
static inline __m512i _mm512_dpbusd_epi32(__m512i sum, __m512i a, __m512i b)
{
    stand_in_v to = {.integers = sum}, x = {.integers = a}, y = {.integers = b};
    FOR_LANES(64) to.u[n / 4] += (uint32_t)(x.bytes[n] * y.signed_bytes[n]);
    return to.integers;
}
static inline __m512i _mm512_dpwssd_epi32(__m512i sum, __m512i a, __m512i b)
{
    stand_in_v to = {.integers = sum}, x = {.integers = a}, y = {.integers = b};
    FOR_LANES(32) to.u[n / 2] += (uint32_t)(x.signed_words[n] * y.signed_words[n]);
    return to.integers;
}
static inline __m512 _mm512_dpbf16_ps(__m512 sum, __m512bh a, __m512bh b)
{
    stand_in_v to = {sum}, x = {.bf16 = a}, y = {.bf16 = b};
    for (int odd = 1; odd >= 0; --odd)
        FOR_LANES(16)
        {
            const stand_in_v l = {.u = {(uint32_t)x.words[2 * n + odd] << 16}}, r = {.u = {(uint32_t)y.words[2 * n + odd] << 16}};
            to.f[n] += l.f[0] * r.f[0];
        }
    return to.floats;
}
