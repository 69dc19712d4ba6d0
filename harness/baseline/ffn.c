/* What the dense FFNs of all libraries share: random weights, and what their hidden layer holds. */
#include "harness/baseline/ffn.h"

#include "gen/weights/random.h"
#include "harness/baseline/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

bool baseline_weights_create(baseline_weights *weights, size_t d, size_t hidden, size_t d_out, uint64_t seed)
{
    *weights = (baseline_weights){.d = d, .hidden = hidden, .d_out = d_out};
    weights->w1 = baseline_memory(hidden * d * sizeof(float), true);
    weights->b1 = baseline_memory(hidden * sizeof(float), false);
    weights->w2 = baseline_memory(d_out * hidden * sizeof(float), true);
    weights->b2 = baseline_memory(d_out * sizeof(float), false);
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

static void release(float *memory, size_t count)
{
    if (memory) {
        munmap(memory, count * sizeof(*memory));
    }
}

void baseline_weights_destroy(baseline_weights *weights)
{
    release(weights->w1, weights->hidden * weights->d);
    free(weights->b1);
    release(weights->w2, weights->d_out * weights->hidden);
    free(weights->b2);
    *weights = (baseline_weights){0};
}

double baseline_gelu(double v)
{
    return 0.5 * v * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (v + 0.044715 * v * v * v)));
}

void baseline_add_name(char *names, size_t size, const char *name)
{
    const size_t used = strlen(names), length = strlen(name);
    for (const char *at = strstr(names, name); at; at = strstr(at + length, name)) {
        if (at[length] == '\0' || at[length] == ',') {
            return;
        }
    }
    if (used + length + sizeof(", ") <= size) {
        snprintf(names + used, size - used, "%s%s", used > 0 ? ", " : "", name);
    }
}

void baseline_weights_calibrate(baseline_weights *weights, const float *x, size_t tokens)
{
    enum { RESULTS = 1 << 17 }; /* enough to see nearly the largest */
    const size_t d = weights->d, wanted = 1 + RESULTS / weights->hidden, seen = wanted < tokens ? wanted : tokens;
    double low = 0.0, high = 0.0;
    for (size_t token = 0; token < seen; ++token) {
        for (size_t unit = 0; unit < weights->hidden; ++unit) {
            double sum = (double)weights->b1[unit];
            for (size_t j = 0; j < d; ++j) {
                sum += (double)weights->w1[unit * d + j] * (double)x[token * d + j];
            }
            low = fmin(low, baseline_gelu(sum));
            high = fmax(high, baseline_gelu(sum));
        }
    }
    weights->low = (float)low;
    weights->high = (float)high;
}
