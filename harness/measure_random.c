/* Seeded near-normal numbers, made from splitmix64. */
#include "measure_random.h"

void measure_random_fill(float *values, size_t count, uint64_t seed, float deviation)
{
    /* four 16-bit numbers: mean 131070, variance 4 * 65536^2 / 12; the half keeps the difference from being zero */
    const float scale = deviation / 37837.2f;
    uint64_t state = seed;
    for (size_t i = 0; i < count; ++i) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t bits = state;
        bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
        bits ^= bits >> 31;
        const int32_t sum = (int32_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
        values[i] = ((float)(sum - 131070) + 0.5f) * scale;
    }
}
