/* Hadamard transforms of blocks of weights; see projection.h. */
#include "harness/convert/projection.h"

#include <string.h>

/* block[b out][b in] becomes factor H block. */
static void transform(float *block, size_t b, float factor)
{
    for (size_t half = 1; half < b; half *= 2)
        for (size_t out = 0; out < b; ++out) {
            if (out & half)
                continue;
            float *low = block + out * b, *high = low + half * b;
            for (size_t in = 0; in < b; ++in) {
                const float sum = low[in] + high[in], difference = low[in] - high[in];
                low[in] = sum;
                high[in] = difference;
            }
        }
    for (size_t i = 0; i < b * b; ++i)
        block[i] *= factor;
}

/* last, others: factors of the fourth stage and of the first three. */
static void transform_all(const fit_lookup *l, const float *from, float *to, double last, double others)
{
    const size_t b = l->block;
    if (from != to)
        memcpy(to, from, l->projection * sizeof *to);
    for (size_t number = 0; b > 0 && number < l->projection / (b * b); ++number)
        transform(to + number * b * b, b, (float)(number / l->blocks % 4 == 3 ? last : others));
}

void projection_fold(const fit_lookup *l, const float *projection, float *folded)
{
    transform_all(l, projection, folded, l->decay, 1);
}

void projection_unfold(const fit_lookup *l, const float *folded, float *projection)
{
    transform_all(l, folded, projection, 1 / ((double)l->block * l->decay), 1 / (double)l->block);
}
