/* Softmax of a matrix of scores, vectorised by the compiler: build this file as baseline_gelu.c, else it becomes a bottleneck of the
 * baselines.
 */
#include "harness/baseline/power.h"
#include "harness/baseline/products.h"
#include "harness/baseline/vectors.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

static inline __attribute__((always_inline)) void softmax(float *restrict score, size_t rows, size_t columns, size_t seen, size_t step,
                                                          float factor)
{
    factor *= 1.44269504f;
    for (size_t row = 0; row < rows; ++row, score += columns, seen += step) {
        float most[LANES], total[LANES];
        for (size_t k = 0; k < LANES; ++k) {
            most[k] = -3e38f;
            total[k] = 0.0f;
        }
        const size_t whole = seen / LANES * LANES;
        for (size_t i = 0; i < whole; i += LANES) {
            for (size_t k = 0; k < LANES; ++k) {
                most[k] = score[i + k] > most[k] ? score[i + k] : most[k];
            }
        }
        for (size_t i = whole; i < seen; ++i) {
            most[i - whole] = score[i] > most[i - whole] ? score[i] : most[i - whole];
        }
        float largest = most[0];
        for (size_t k = 1; k < LANES; ++k) {
            largest = most[k] > largest ? most[k] : largest;
        }
        /* what fills up the last vector is seen with weight 0 */
        for (size_t i = seen; i < columns && i < whole + LANES; ++i) {
            score[i] = -3e38f;
        }
        const size_t end = whole + LANES <= columns ? whole + LANES : columns;
        for (size_t i = 0; i < end; i += LANES) {
            const size_t count = end - i < LANES ? end - i : LANES;
            float x[LANES] = {0};
            memcpy(x, score + i, count * sizeof(float));
            for (size_t k = 0; k < LANES; ++k) {
                const float e = (x[k] - largest) * factor;
                x[k] = baseline_power_of_two(e < -126.0f ? -126.0f : e);
            }
            for (size_t k = 0; k < count; ++k) {
                total[k] += x[k];
            }
            memcpy(score + i, x, count * sizeof(float));
        }
        float all = total[0];
        for (size_t k = 1; k < LANES; ++k) {
            all += total[k];
        }
        const float share = 1.0f / all;
        for (size_t i = 0; i < seen; ++i) {
            score[i] *= share;
        }
        memset(score + seen, 0, (columns - seen) * sizeof(float));
    }
}

__attribute__((target(VECTORS_64_TARGET ",prefer-vector-width=512"))) static void softmax_64(float *score, size_t rows, size_t columns,
                                                                                             size_t seen, size_t step, float factor)
{
    softmax(score, rows, columns, seen, step, factor);
}

VECTORS_32 static void softmax_32(float *score, size_t rows, size_t columns, size_t seen, size_t step, float factor)
{
    softmax(score, rows, columns, seen, step, factor);
}

void baseline_softmax(const baseline_attention *of, float *score)
{
    const size_t columns = of->position + of->tokens, rows = of->tokens == 1 ? of->heads / of->kv_heads : of->tokens;
    const size_t seen = of->causal ? of->position + 1 : columns, step = of->causal && of->tokens > 1 ? 1 : 0;
    const float factor = 1.0f / sqrtf((float)of->width);
    switch (vectors_bytes()) {
    case 64: softmax_64(score, rows, columns, seen, step, factor); break;
    case 32: softmax_32(score, rows, columns, seen, step, factor); break;
    default: softmax(score, rows, columns, seen, step, factor);
    }
}
