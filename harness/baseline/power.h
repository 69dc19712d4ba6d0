/* Powers of two for loops that the compiler turns into vectors: what the baselines' GELU and softmax are made of. */
#ifndef LOOKUPC_BASELINE_POWER_H
#define LOOKUPC_BASELINE_POWER_H

#include <stdint.h>
#include <string.h>

/* 2^e, -126 <= e <= 126: 2^whole * 2^part, |part| <= 0.5, by a polynomial within 1e-7. */
static inline __attribute__((always_inline)) float baseline_power_of_two(float e)
{
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
    const float shifted = e + round;
    const float part = e - (shifted - round);
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits + 127u) << 23;
    float whole;
    memcpy(&whole, &bits, sizeof(whole));
    const float power =
        1.0f + part * (0.693146978f + part * (0.240222421f + part * (0.0555073374f + part * (0.00967151279f + part * 0.00132647273f))));
    return whole * power;
}

#endif
