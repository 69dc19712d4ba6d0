/* Rounds the inputs of a dense FFN to bytes with a scale of their own, vectorised by the compiler: build this file as gelu.c. */
#include "harness/baseline/ffn.h"
#include "harness/baseline/vectors.h"

#include <string.h>

/* Sizes of floats compare like the integers that hold their bits. */
static inline __attribute__((always_inline)) uint32_t largest_bits(const float *restrict x, size_t count)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bits &= 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

static inline __attribute__((always_inline)) void bytes(const float *restrict x, size_t count, float inverse, uint8_t *restrict to)
{
    for (size_t i = 0; i < count; ++i) {
        to[i] = (uint8_t)(int32_t)(x[i] * inverse + 128.5f); /* positive: cutting off the fraction rounds */
    }
}

/* One copy for each vector width, as in gelu.c. */
VECTORS_64 static uint32_t largest_bits_64(const float *x, size_t count)
{
    return largest_bits(x, count);
}

VECTORS_32 static uint32_t largest_bits_32(const float *x, size_t count)
{
    return largest_bits(x, count);
}

VECTORS_64 static void bytes_64(const float *x, size_t count, float inverse, uint8_t *to)
{
    bytes(x, count, inverse, to);
}

VECTORS_32 static void bytes_32(const float *x, size_t count, float inverse, uint8_t *to)
{
    bytes(x, count, inverse, to);
}

static uint32_t largest_bits_here(const float *x, size_t count)
{
    switch (vectors_bytes()) {
    case 64: return largest_bits_64(x, count);
    case 32: return largest_bits_32(x, count);
    default: return largest_bits(x, count);
    }
}

static void bytes_here(const float *x, size_t count, float inverse, uint8_t *to)
{
    switch (vectors_bytes()) {
    case 64: bytes_64(x, count, inverse, to); break;
    case 32: bytes_32(x, count, inverse, to); break;
    default: bytes(x, count, inverse, to);
    }
}

/* A thread is worth so many numbers at least. */
static size_t parts_of(size_t count, size_t threads)
{
    enum { LEAST = 1 << 14 };
    const size_t parts = count / LEAST;
    return parts < 1 ? 1 : parts < threads ? parts : threads;
}

float baseline_largest(const float *x, size_t count, size_t threads)
{
    const size_t parts = parts_of(count, threads);
    uint32_t largest = 0;
    if (parts == 1) {
        largest = largest_bits_here(x, count);
    } else {
#pragma omp parallel for num_threads((int)parts) schedule(static, 1) reduction(max : largest)
        for (size_t part = 0; part < parts; ++part) {
            const size_t first = part * count / parts, next = (part + 1) * count / parts;
            const uint32_t here = largest_bits_here(x + first, next - first);
            largest = here > largest ? here : largest;
        }
    }
    float value;
    memcpy(&value, &largest, sizeof(value));
    return value;
}

void baseline_bytes(const float *x, size_t count, float unit, uint8_t *to, size_t threads)
{
    const size_t parts = parts_of(count, threads);
    const float inverse = 1.0f / unit;
    if (parts == 1) {
        bytes_here(x, count, inverse, to);
        return;
    }
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (size_t part = 0; part < parts; ++part) {
        const size_t first = part * count / parts, next = (part + 1) * count / parts;
        bytes_here(x + first, next - first, inverse, to + first);
    }
}

void baseline_scales(const float *restrict scale, const float *restrict bias, const float *restrict offset, size_t count, float unit,
                     float *restrict scale_now, float *restrict bias_now)
{
    const float inverse = 1.0f / unit;
    for (size_t i = 0; i < count; ++i) {
        scale_now[i] = scale[i] * unit;
        bias_now[i] = bias[i] * inverse + offset[i];
    }
}
