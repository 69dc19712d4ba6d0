/* The blocks of values that GGUF files hold in 2 to 8 bits, and what they stand for. */
#include "gen/weights/gguf_blocks.h"

#include "gen/weights/safetensors.h"

#include <stdbool.h>

/* In the drawings d is the scale and m the minimum, in F16 or multiplied from an F16 and a small integer; q the integers. Sums and products
   are exact in double, so that each value is rounded once. */

static double f16_at(const unsigned char *bytes)
{
    return safetensors_from_f16(bytes);
}

static double signed_byte(unsigned char byte)
{
    return byte < 128 ? byte : byte - 256;
}

/* The four bits of element `at` of 32 in 16 bytes: first the lower halves of all, then the upper ones. */
static unsigned nibble(const unsigned char *bytes, unsigned at)
{
    return bytes[at % 16] >> at / 16 * 4 & 15u;
}

/* 32 values of 4 bits: d, q[16 bytes]: d (q - 8). */
static void decode_q4_0(const unsigned char *block, float *out)
{
    const double d = f16_at(block);
    for (unsigned i = 0; i < 32; ++i)
        out[i] = (float)(d * ((double)nibble(block + 2, i) - 8.0));
}

/* d, m, q[16 bytes]: d q + m. */
static void decode_q4_1(const unsigned char *block, float *out)
{
    const double d = f16_at(block), m = f16_at(block + 2);
    for (unsigned i = 0; i < 32; ++i)
        out[i] = (float)(d * nibble(block + 4, i) + m);
}

void gguf_blocks_units(const gguf_blocks *blocks, const unsigned char *block, double *units, uint16_t *scale, uint16_t *minimum)
{
    const bool above = blocks->number == GGUF_Q4_1, bytes = blocks->number == GGUF_Q8_0;
    *scale = (uint16_t)(block[0] | block[1] << 8);
    if (above)
        *minimum = (uint16_t)(block[2] | block[3] << 8);
    for (unsigned i = 0; i < 32; ++i)
        units[i] = bytes ? signed_byte(block[2 + i]) : nibble(block + (above ? 4 : 2), i) - (above ? 0.0 : 8.0);
}

/* Element `at` of 32 with 5 bits: the upper bits of all in 4 bytes, then as nibbles. */
static unsigned five_bits(const unsigned char *bytes, unsigned at)
{
    return nibble(bytes + 4, at) | (bytes[at / 8] >> at % 8 & 1u) << 4;
}

/* d, q[4 + 16 bytes]: d (q - 16). */
static void decode_q5_0(const unsigned char *block, float *out)
{
    const double d = f16_at(block);
    for (unsigned i = 0; i < 32; ++i)
        out[i] = (float)(d * ((double)five_bits(block + 2, i) - 16.0));
}

/* d, m, q[4 + 16 bytes]: d q + m. */
static void decode_q5_1(const unsigned char *block, float *out)
{
    const double d = f16_at(block), m = f16_at(block + 2);
    for (unsigned i = 0; i < 32; ++i)
        out[i] = (float)(d * five_bits(block + 4, i) + m);
}

/* d, q[32]: d q. */
static void decode_q8_0(const unsigned char *block, float *out)
{
    const double d = f16_at(block);
    for (unsigned i = 0; i < 32; ++i)
        out[i] = (float)(d * signed_byte(block[2 + i]));
}

/* The blocks of 256 hold their integers in strips of 32 bytes: byte l of a strip has a part of element l of several rows of 32. */

/* Two bits of element `at` of 256, in 64 bytes: four rows to a strip. */
static unsigned two_bits(const unsigned char *bytes, unsigned at)
{
    return bytes[at / 128 * 32 + at % 32] >> at % 128 / 32 * 2 & 3u;
}

/* Four bits of element `at` of 256, in 128 bytes: two rows to a strip. */
static unsigned four_bits(const unsigned char *bytes, unsigned at)
{
    return bytes[at / 64 * 32 + at % 32] >> at % 64 / 32 * 4 & 15u;
}

/* One bit of element `at` of 256, in 32 bytes: eight rows. */
static unsigned one_bit(const unsigned char *bytes, unsigned at)
{
    return bytes[at % 32] >> at / 32 & 1u;
}

/* scales[16], of 4 bits and above them minima of 4 bits; q[64 bytes]; d; m: d scale q - m minimum, in groups of 16. */
static void decode_q2_k(const unsigned char *block, float *out)
{
    const double d = f16_at(block + 80), m = f16_at(block + 82);
    for (unsigned i = 0; i < 256; ++i) {
        const unsigned both = block[i / 16];
        out[i] = (float)(d * (both & 15u) * two_bits(block + 16, i) - m * (both >> 4));
    }
}

/* upper bits [32 bytes]; q[64 bytes]; scales[12 bytes]: 16 of 6 bits, 4 lower ones as nibbles in 8 bytes, 2 upper ones in 4 bytes; d:
   d (scale - 32) (q - 4), in groups of 16. */
static void decode_q3_k(const unsigned char *block, float *out)
{
    const double d = f16_at(block + 108);
    const unsigned char *const scales = block + 96;
    for (unsigned i = 0; i < 256; ++i) {
        const unsigned group = i / 16;
        const unsigned scale = (scales[group % 8] >> group / 8 * 4 & 15u) | (scales[8 + group % 4] >> group / 4 * 2 & 3u) << 4;
        const unsigned q = two_bits(block + 32, i) | one_bit(block, i) << 2;
        out[i] = (float)(d * ((double)scale - 32.0) * ((double)q - 4.0));
    }
}

/* Scale and minimum of each of 8 groups, 6 bits each, in 12 bytes: those of the first four in the lower 6 bits of bytes 0 and 4 on; those
   of the others have 4 lower bits in bytes 8 on, and their 2 upper ones above the first ones'. */
static void group_of(const unsigned char *bytes, unsigned group, unsigned *scale, unsigned *minimum)
{
    const unsigned first = bytes[group % 4], second = bytes[4 + group % 4], third = bytes[8 + group % 4];
    *scale = group < 4 ? first & 63u : (third & 15u) | first >> 6 << 4;
    *minimum = group < 4 ? second & 63u : third >> 4 | second >> 6 << 4;
}

/* d; m; scales and minima [12 bytes]: d scale q - m minimum, in groups of 32, with q and its upper bits, or NULL, where they lie. */
static void decode_groups(const unsigned char *block, const unsigned char *q, const unsigned char *upper, float *out)
{
    const double d = f16_at(block), m = f16_at(block + 2);
    for (unsigned group = 0; group < 8; ++group) {
        unsigned scale, minimum;
        group_of(block + 4, group, &scale, &minimum);
        for (unsigned i = 32 * group; i < 32 * group + 32; ++i) {
            const unsigned integer = four_bits(q, i) | (upper != NULL ? one_bit(upper, i) << 4 : 0);
            out[i] = (float)(d * scale * integer - m * minimum);
        }
    }
}

/* d; m; scales and minima [12 bytes]; q[128 bytes]. */
static void decode_q4_k(const unsigned char *block, float *out)
{
    decode_groups(block, block + 16, NULL, out);
}

/* d; m; scales and minima [12 bytes]; upper bits [32 bytes]; q[128 bytes]. */
static void decode_q5_k(const unsigned char *block, float *out)
{
    decode_groups(block, block + 48, block + 16, out);
}

/* q[128 bytes] in two halves of 64, in each four rows of 32; upper bits [64 bytes]; scales[16]; d: d scale (q - 32), in groups of 16. */
static void decode_q6_k(const unsigned char *block, float *out)
{
    const double d = f16_at(block + 208);
    for (unsigned i = 0; i < 256; ++i) {
        const unsigned row = i % 128 / 32;
        const unsigned lower = block[i / 128 * 64 + row % 2 * 32 + i % 32] >> row / 2 * 4 & 15u;
        const unsigned q = lower | two_bits(block + 128, i) << 4;
        out[i] = (float)(d * signed_byte(block[192 + i / 16]) * ((double)q - 32.0));
    }
}

static const gguf_blocks types[] = {
    {GGUF_Q4_0, "Q4_0", 32, 18, decode_q4_0}, {GGUF_Q4_1, "Q4_1", 32, 20, decode_q4_1}, {6, "Q5_0", 32, 22, decode_q5_0},
    {7, "Q5_1", 32, 24, decode_q5_1},         {GGUF_Q8_0, "Q8_0", 32, 34, decode_q8_0}, {10, "Q2_K", 256, 84, decode_q2_k},
    {11, "Q3_K", 256, 110, decode_q3_k},      {12, "Q4_K", 256, 144, decode_q4_k},      {13, "Q5_K", 256, 176, decode_q5_k},
    {14, "Q6_K", 256, 210, decode_q6_k},
};

const gguf_blocks *gguf_blocks_of(uint32_t number)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}
