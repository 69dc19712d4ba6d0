/* What the baselines of a transformer's blocks are checked against: plain double loops. */
#include "harness/baseline/products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ‖a − b‖² and ‖b‖². */
typedef struct tally {
    double off, power;
} tally;

static double relative(tally sum)
{
    const double error = sqrt(sum.off / sum.power);
    return isfinite(error) ? error : INFINITY;
}

static void compare(tally *sum, float found, double wanted)
{
    sum->off += ((double)found - wanted) * ((double)found - wanted);
    sum->power += wanted * wanted;
}

double baseline_product_tolerance(const char *type)
{
    return strcmp(type, "f32") == 0 ? 1e-4 : strcmp(type, "bf16") == 0 ? 2e-2 : 6e-2;
}

double baseline_product_error(const baseline_matrix *matrix, size_t tokens, const float *x, const float *y)
{
    enum { CHECKED = 64 }; /* outputs, spread over all of them */
    tally sum = {0.0, 0.0};
    const size_t places[] = {0, tokens - 1};
    for (size_t i = 0; i < 2; ++i) {
        for (size_t k = 0; k < CHECKED; ++k) {
            const size_t output = k * (matrix->outputs - 1) / (CHECKED - 1), token = places[i];
            double wanted = 0.0;
            for (size_t input = 0; input < matrix->inputs; ++input) {
                wanted += (double)matrix->weights[output * matrix->inputs + input] * (double)x[token * matrix->inputs + input];
            }
            compare(&sum, y[token * matrix->outputs + output], wanted);
        }
    }
    return relative(sum);
}

double baseline_attention_error(const baseline_attention *of, const float *y)
{
    const size_t end = of->position + of->tokens, e = of->kv_heads * of->width, d = of->heads * of->width;
    const float *keys = of->keys + (of->layers - 1) * end * e, *values = of->values + (of->layers - 1) * end * e;
    double *weight = malloc(end * sizeof(*weight));
    if (!weight) {
        return INFINITY;
    }
    tally sum = {0.0, 0.0};
    for (size_t i = 0; i < 4; ++i) {
        const size_t token = i & 1 ? of->tokens - 1 : 0, head = i & 2 ? of->heads - 1 : 0,
                     seen = of->causal ? of->position + token + 1 : end;
        const size_t at = head / (of->heads / of->kv_heads) * of->width;
        double total = 0.0;
        for (size_t k = 0; k < seen; ++k) {
            double score = 0.0;
            for (size_t n = 0; n < of->width; ++n) {
                score += (double)of->q[token * d + head * of->width + n] * (double)keys[k * e + at + n];
            }
            weight[k] = exp(score / sqrt((double)of->width));
            total += weight[k];
        }
        for (size_t n = 0; n < of->width; ++n) {
            double wanted = 0.0;
            for (size_t k = 0; k < seen; ++k) {
                wanted += weight[k] / total * (double)values[k * e + at + n];
            }
            compare(&sum, y[token * d + head * of->width + n], wanted);
        }
    }
    free(weight);
    return relative(sum);
}
