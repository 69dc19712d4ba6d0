/* Compares the dense FFN of a library with float64: no output may be further off than rounding its factors explains. */
#include "harness/baseline/ffn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounding v leaves a variance of unit²/12 + (share v)²/12: of integers a whole number of units stays, of floats a share of the number. */
typedef struct rounding {
    double unit, share;
} rounding;

static double variance(rounding of, double value)
{
    return (of.unit * of.unit + of.share * of.share * value * value) / 12.0;
}

static double largest(const float *values, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; ++i) {
        most = fmax(most, fabs((double)values[i]));
    }
    return most;
}

/* A sum of products of a row of weights with values that are off by variances of their own. */
typedef struct row_sum {
    double value;    /* with the bias */
    double variance; /* of it: rounded weights, the values' own */
    double squares;  /* of its terms */
} row_sum;

static row_sum sum_row(const float *weights, size_t count, double bias, rounding of_weights, const double *values, const double *variances)
{
    row_sum sum = {.value = bias, .squares = bias * bias};
    for (size_t i = 0; i < count; ++i) {
        const double weight = (double)weights[i], term = weight * values[i];
        sum.value += term;
        sum.variance += weight * weight * variances[i] + values[i] * values[i] * variance(of_weights, weight);
        sum.squares += term * term;
    }
    return sum;
}

static double slope_of_gelu(double v)
{
    const double root = sqrt(2.0 / acos(-1.0)), t = tanh(root * (v + 0.044715 * v * v * v));
    return 0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * root * (1.0 + 3.0 * 0.044715 * v * v);
}

/* Rounding of weights with that many in a row. */
static rounding of_weights(const baseline_library *library, double share, const float *row, size_t count)
{
    return library->largest_weight ? (rounding){.unit = largest(row, count) / library->largest_weight()} : (rounding){.share = share};
}

baseline_error baseline_check(const baseline_library *library, const baseline_weights *weights, const float *x, size_t tokens, size_t token,
                              const float *y)
{
    const double sums = 1e-5;    /* of a sum's terms, taken together: float32 */
    const double levels = 255.0; /* of a byte */
    const bool i8 = library->largest_weight;
    const double share = strcmp(library->type, "bf16") == 0 ? 0x1p-7 : 0.0;
    const size_t d = weights->d, hidden = weights->hidden, longest = d > hidden ? d : hidden;
    const double low = (double)weights->low, high = (double)weights->high;
    const rounding of_x = {i8 ? largest(x, tokens * d) / 127.0 : 0.0, share}, of_hidden = {i8 ? (high - low) / levels : 0.0, share};
    baseline_error found = {INFINITY, INFINITY};
    double *memory = calloc(4 * longest, sizeof(*memory));
    if (!memory) {
        return found;
    }
    double *value = memory, *off = value + longest, *unit = off + longest, *unit_off = unit + longest;
    for (size_t j = 0; j < d; ++j) {
        value[j] = (double)x[token * d + j];
        off[j] = variance(of_x, value[j]);
    }
    for (size_t i = 0; i < hidden; ++i) {
        const float *row = weights->w1 + i * d;
        const row_sum z = sum_row(row, d, (double)weights->b1[i], of_weights(library, share, row, d), value, off);
        const double slope = slope_of_gelu(z.value);
        unit[i] = baseline_gelu(z.value);
        const double beyond = i8 ? fmax(fmax(unit[i] - high, low - unit[i]), 0.0) : 0.0;
        unit_off[i] = slope * slope * z.variance + variance(of_hidden, unit[i]) + beyond * beyond;
    }
    double error = 0.0, norm = 0.0;
    found.deviations = 0.0;
    for (size_t o = 0; o < weights->d_out; ++o) {
        const float *row = weights->w2 + o * hidden;
        const row_sum sum = sum_row(row, hidden, (double)weights->b2[o], of_weights(library, share, row, hidden), unit, unit_off);
        const double difference = (double)y[o] - sum.value, deviation = sqrt(sum.variance + sums * sums * sum.squares);
        error += difference * difference;
        norm += sum.value * sum.value;
        found.deviations = fmax(found.deviations, fabs(difference) / deviation);
    }
    free(memory);
    found.relative = sqrt(error / norm);
    return isfinite(found.relative) ? found : (baseline_error){INFINITY, INFINITY};
}
