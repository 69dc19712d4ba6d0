/* What the dense FFNs of all libraries share: random weights and the plain double loop they are checked against. */
#include "harness/baseline/ffn.h"

#include "gen/weights/random.h"
#include "harness/base/memory.h"

#include <math.h>

bool baseline_weights_create(baseline_weights *weights, size_t d, size_t hidden, size_t d_out, uint64_t seed)
{
    *weights = (baseline_weights){.d = d, .hidden = hidden, .d_out = d_out};
    weights->w1 = aligned_memory(hidden * d * sizeof(float));
    weights->b1 = aligned_memory(hidden * sizeof(float));
    weights->w2 = aligned_memory(d_out * hidden * sizeof(float));
    weights->b2 = aligned_memory(d_out * sizeof(float));
    if (!weights->w1 || !weights->b1 || !weights->w2 || !weights->b2) {
        baseline_weights_destroy(weights);
        return false;
    }
    /* deviations that keep the activations near 1, so that GELU sees both of its halves */
    random_state random = random_seed(seed);
    random_fill(&random, weights->w1, hidden * d, 0.0, 1.0 / sqrt((double)d));
    random_fill(&random, weights->b1, hidden, 0.0, 0.1);
    random_fill(&random, weights->w2, d_out * hidden, 0.0, 1.0 / sqrt((double)hidden));
    random_fill(&random, weights->b2, d_out, 0.0, 0.1);
    return true;
}

void baseline_weights_destroy(baseline_weights *weights)
{
    free(weights->w1);
    free(weights->b1);
    free(weights->w2);
    free(weights->b2);
    *weights = (baseline_weights){0};
}

double baseline_relative_error(const baseline_weights *weights, const float *x, const float *y)
{
    double *hidden = malloc(weights->hidden * sizeof(*hidden));
    if (!hidden) {
        return INFINITY;
    }
    for (size_t i = 0; i < weights->hidden; ++i) {
        double sum = (double)weights->b1[i];
        for (size_t j = 0; j < weights->d; ++j) {
            sum += (double)weights->w1[i * weights->d + j] * (double)x[j];
        }
        hidden[i] = 0.5 * sum * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (sum + 0.044715 * sum * sum * sum)));
    }
    double error = 0.0, norm = 0.0;
    for (size_t o = 0; o < weights->d_out; ++o) {
        double sum = (double)weights->b2[o];
        for (size_t i = 0; i < weights->hidden; ++i) {
            sum += (double)weights->w2[o * weights->hidden + i] * hidden[i];
        }
        error += ((double)y[o] - sum) * ((double)y[o] - sum);
        norm += sum * sum;
    }
    free(hidden);
    const double relative = sqrt(error / norm);
    return isfinite(relative) ? relative : INFINITY;
}
