/* AVX-VNNI for CPUs that have only AVX2: the intrinsics that lookupc prints, by their meaning, one product after the other in 64 bits.
   Included before all else (-include), without -mavxvnni. */
#include <immintrin.h>
#include <stdint.h>

typedef union {
    __m256i vector;
    uint32_t words[8];
    int16_t halves[16];
    uint8_t bytes[32];
    int8_t signed_bytes[32];
} stand_in_lanes;

static inline __m256i stand_in_dpbusd(__m256i sum, __m256i a, __m256i b)
{
    stand_in_lanes to = {sum}, left = {a}, right = {b};
    for (unsigned i = 0; i < 8; ++i) {
        int64_t total = (int32_t)to.words[i];
        for (unsigned k = 4 * i; k < 4 * i + 4; ++k)
            total += (int64_t)left.bytes[k] * right.signed_bytes[k];
        to.words[i] = (uint32_t)total;
    }
    return to.vector;
}

static inline __m256i stand_in_dpwssd(__m256i sum, __m256i a, __m256i b)
{
    stand_in_lanes to = {sum}, left = {a}, right = {b};
    for (unsigned i = 0; i < 8; ++i) {
        int64_t total = (int32_t)to.words[i];
        for (unsigned k = 2 * i; k < 2 * i + 2; ++k)
            total += (int64_t)left.halves[k] * right.halves[k];
        to.words[i] = (uint32_t)total;
    }
    return to.vector;
}

#define _mm256_dpbusd_avx_epi32 stand_in_dpbusd
#define _mm256_dpwssd_avx_epi32 stand_in_dpwssd
#define __AVXVNNI__ 1
