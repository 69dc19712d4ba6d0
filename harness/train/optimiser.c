/* AdamW and sums of squares; see optimiser.h. */
#include "harness/train/optimiser.h"

#include <math.h>

/* Averages below this are 0: they move no weight by a bit, and fade to denormals, which take a CPU a hundred times longer. */
static const float faded = 1e-30f;

adam_step adam_at(size_t step, float rate, float decay, float beta1, float beta2, float epsilon)
{
    return (adam_step){
        .rate = rate,
        .decay = decay,
        .beta1 = beta1,
        .beta2 = beta2,
        .first = (float)(1 / (1 - pow((double)beta1, (double)step))),
        .second = (float)(1 / (1 - pow((double)beta2, (double)step))),
        .epsilon = epsilon,
    };
}

void adam_update(const adam_step *s, float scale, float *restrict weights, const float *restrict gradients, float *restrict first,
                 float *restrict second, size_t count)
{
    const float beta1 = s->beta1, beta2 = s->beta2, rate = s->rate * s->first, kept = 1 - s->rate * s->decay, epsilon = s->epsilon;
    for (size_t i = 0; i < count; ++i) {
        const float gradient = scale * gradients[i];
        const float next_mean = beta1 * first[i] + (1 - beta1) * gradient;
        const float next_square = beta2 * second[i] + (1 - beta2) * gradient * gradient;
        const float mean = fabsf(next_mean) < faded ? 0.0f : next_mean;
        const float square = next_square < faded ? 0.0f : next_square;
        first[i] = mean;
        second[i] = square;
        weights[i] = kept * weights[i] - rate * mean / (sqrtf(s->second * square) + epsilon);
    }
}

double sum_of_squares(const float *values, size_t count)
{
    double sums[8] = {0};
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (size_t k = 0; k < 8; ++k)
            sums[k] += (double)values[i + k] * (double)values[i + k];
    for (; i < count; ++i)
        sums[i % 8] += (double)values[i] * (double)values[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}
