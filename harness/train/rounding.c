/* Rounded copies of tensors, by the packer's folding and rounding; see rounding.h. */
#include "harness/train/rounding.h"

#include <math.h>

void rounding_apply(const rounding *r, const float *from, size_t count, float *to, double *work, float *scales)
{
    const bool scaled = quantise_scaled(r->type);
    const size_t width = scaled ? r->row : count;
    for (size_t i = 0; i < count; ++i)
        work[i] = (double)from[i];
    if (r->hadamard)
        fold_hadamard(work, count, r->hadamard);
    if (r->rank)
        fold_scale(work + r->at, r->dims, r->rank, r->factor, NULL);
    if (!quantise_round(r->type, work, count / width, width, scales, NULL)) {
        for (size_t i = 0; i < count; ++i)
            to[i] = NAN;
        return;
    }
    for (size_t i = 0; scaled && i < count; i += width)
        for (size_t k = 0; k < width; ++k)
            work[i + k] *= (double)scales[i / width];
    if (r->rank)
        fold_scale(work + r->at, r->dims, r->rank, 1 / r->factor, NULL);
    if (r->hadamard)
        fold_hadamard(work, count, r->hadamard); /* which is its own inverse, times the size */
    const double back = r->hadamard ? 1 / (double)r->hadamard : 1;
    for (size_t i = 0; i < count; ++i)
        to[i] = (float)(work[i] * back);
}

void rounding_take(const rounding *r, float *values, size_t count, float *lost, double *work, float *scales)
{
    rounding_apply(r, values, count, lost, work, scales);
    for (size_t i = 0; i < count; ++i) {
        const float rounded = lost[i];
        lost[i] = values[i] - rounded;
        values[i] = rounded;
    }
}
