/* LookupFFN in float64, straight from its definitions. */
#include "harness/reference/lookup.h"

#include "harness/reference/type.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const reference_score_row reference_scores[REFERENCE_SCORES] = {
    [REFERENCE_GELU] = {.name = "gelu", .share = true, .along = true},
    [REFERENCE_SOFTMAX] = {.name = "softmax", .share = true, .along = false},
    [REFERENCE_ONE] = {.name = "one", .share = false, .along = false},
};

size_t reference_padded(const reference_model *model)
{
    size_t padded = 1;
    while (padded < model->d)
        padded *= 2;
    return padded;
}

size_t reference_repeats(const reference_model *model)
{
    const size_t padded = reference_padded(model);
    return (model->h * model->tau + padded - 1) / padded;
}

size_t reference_projection_count(const reference_model *model)
{
    if (model->projection == REFERENCE_DENSE)
        return model->h * model->tau * model->d;
    return reference_repeats(model) * 4 * reference_padded(model) * model->block;
}

void reference_moments(const reference_model *model, const double *x, double *mean, double *variance)
{
    const double count = (double)model->d;
    *mean = 0.0;
    *variance = 0.0;
    for (size_t i = 0; i < model->d; ++i)
        *mean += x[i] / count;
    for (size_t i = 0; i < model->d; ++i)
        *variance += (x[i] - *mean) * (x[i] - *mean) / count;
}

void reference_norm(const reference_model *model, const reference_weights *weights, const double *x, double *normalised)
{
    double mean, variance;
    if (!model->norm) {
        memcpy(normalised, x, model->d * sizeof *x);
        return;
    }
    reference_moments(model, x, &mean, &variance);
    for (size_t i = 0; i < model->d; ++i)
        normalised[i] = (x[i] - mean) / sqrt(variance + model->norm_eps) * weights->norm_weight[i] + weights->norm_bias[i];
}

/* H_2n = [H_n H_n; H_n -H_n]: transform both halves, then their sum and difference. */
void reference_hadamard(double *y, size_t n)
{
    if (n == 1)
        return;
    const size_t half = n / 2;
    reference_hadamard(y, half);
    reference_hadamard(y + half, half);
    for (size_t i = 0; i < half; ++i) {
        const double first = y[i], second = y[half + i];
        y[i] = first + second;
        y[half + i] = first - second;
    }
}

void reference_bh4_step(const reference_model *model, const double *blocks, double *y, double *temporary)
{
    const size_t padded = reference_padded(model), block = model->block;
    for (size_t first = 0; first < padded; first += block) {
        for (size_t o = 0; o < block; ++o) {
            double sum = 0.0;
            for (size_t i = 0; i < block; ++i)
                sum += blocks[(first + o) * block + i] * y[first + i];
            temporary[first + o] = sum;
        }
    }
    memcpy(y, temporary, padded * sizeof *y);
    reference_hadamard(y, padded);
}

/* Rounds values[count] to multiples of a unit, so that the largest is `levels` of them, ties to even. Zeros stay. */
static void round_to_levels(double *values, size_t count, double levels)
{
    double largest = 0.0;
    for (size_t i = 0; i < count; ++i)
        largest = fmax(largest, fabs(values[i]));
    for (size_t i = 0; largest > 0.0 && i < count; ++i)
        values[i] = rint(values[i] * levels / largest) * (largest / levels);
}

/* The inputs y[count] of a product as kernels round them. */
static void round_inputs(const reference_model *model, const reference_weights *weights, double *y, size_t count)
{
    const size_t step = weights->unit_of_block && model->projection == REFERENCE_BH4 ? model->block : count;
    for (size_t i = 0; weights->bf16_inputs && weights->rounds_inputs && i < count; ++i)
        y[i] = reference_round(REFERENCE_BF16, y[i]);
    for (size_t first = 0; !weights->bf16_inputs && weights->rounds_inputs && first < count; first += step)
        round_to_levels(y + first, step, weights->input_levels);
}

/* y[count] <- x[d], then zeros, rounded as the first product's inputs: kernels have folded the norm's gain into the weights. What has no
   gain is lost, even where it would set the unit. */
static void first_inputs(const reference_model *model, const reference_weights *weights, const double *x, double *y, size_t count)
{
    const double *gain = model->norm && weights->rounds_inputs ? weights->norm_weight : NULL;
    for (size_t i = 0; i < count; ++i)
        y[i] = i >= model->d ? 0.0 : !gain ? x[i] : gain[i] != 0.0 ? x[i] / gain[i] : 0.0;
    round_inputs(model, weights, y, count);
    for (size_t i = 0; gain && i < model->d; ++i)
        y[i] *= gain[i];
}

/* y [2][N]: overwritten */
static void project_bh4(const reference_model *model, const reference_weights *weights, const double *x, double *y, double *z)
{
    const size_t padded = reference_padded(model), count = model->h * model->tau;
    const double *blocks = weights->projection;
    for (size_t repeat = 0; repeat < reference_repeats(model); ++repeat) {
        first_inputs(model, weights, x, y, padded);
        for (int step = 0; step < 4; ++step, blocks += padded * model->block) {
            if (step > 0)
                round_inputs(model, weights, y, padded);
            reference_bh4_step(model, blocks, y, y + padded);
        }
        for (size_t i = 0, j = repeat * padded; i < padded && j < count; ++i, ++j)
            z[j] = model->decay * y[i] + (1.0 - model->decay) * (i < model->d ? x[i] : 0.0) + weights->bias[j];
    }
}

double reference_passed(const reference_model *model, const double *x, size_t j)
{
    const size_t i = j % reference_padded(model);
    return i < model->d ? x[i] : 0.0;
}

/* y [d]: overwritten */
static void project_dense(const reference_model *model, const reference_weights *weights, const double *x, double *y, double *z)
{
    first_inputs(model, weights, x, y, model->d);
    for (size_t j = 0; j < model->h * model->tau; ++j) {
        double sum = 0.0;
        for (size_t i = 0; i < model->d; ++i)
            sum += weights->projection[j * model->d + i] * y[i];
        z[j] = sum + weights->bias[j] + model->rest * reference_passed(model, x, j);
    }
}

static void project(const reference_model *model, const reference_weights *weights, const double *x, double *work, double *z)
{
    (model->projection == REFERENCE_BH4 ? project_bh4 : project_dense)(model, weights, x, work, z);
}

/* The norm's offset goes its own way: kernels have its projection, of unrounded inputs, in the bias. */
bool reference_project(const reference_model *model, const reference_weights *weights, const double *normalised, double *z)
{
    const size_t bits = model->h * model->tau;
    const bool apart = model->norm && weights->rounds_inputs;
    const double *offset = weights->norm_bias;
    double *work = malloc((2 * reference_padded(model) + model->d + bits) * sizeof *work);
    if (!work)
        return false;
    double *x = work + 2 * reference_padded(model), *shift = x + model->d;
    for (size_t i = 0; i < model->d; ++i)
        x[i] = normalised[i] - (apart ? offset[i] : 0.0);
    project(model, weights, x, work, z);
    if (apart) {
        reference_weights unrounded = *weights;
        unrounded.rounds_inputs = false;
        project(model, &unrounded, offset, work, shift);
    }
    for (size_t j = 0; apart && j < bits; ++j)
        z[j] += shift[j] - weights->bias[j];
    free(work);
    return true;
}

size_t reference_code(const reference_model *model, const double *z)
{
    size_t code = 0;
    for (size_t j = 0; j < model->tau; ++j)
        code = 2 * code + (z[j] > 0.0 ? 1 : 0);
    return code;
}

/* Coordinate j of a vertex, +1 or -1. */
static double coordinate(const reference_model *model, size_t code, size_t j)
{
    return (code >> (model->tau - 1 - j) & 1) != 0 ? 1.0 : -1.0;
}

double reference_cost(const reference_model *model, const double *z, size_t code)
{
    double sum = 0.0;
    for (size_t j = 0; j < model->tau; ++j)
        sum += coordinate(model, code, j) * z[j] < 0.0 ? fabs(z[j]) : 0.0;
    return sum;
}

typedef struct {
    double cost;
    size_t code;
} vertex;

static int compare_vertices(const void *first, const void *second)
{
    const vertex *a = first, *b = second;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return a->code < b->code ? -1 : a->code > b->code;
}

bool reference_vertices(const reference_model *model, const double *z, size_t *code)
{
    const size_t count = (size_t)1 << model->tau;
    vertex *all = malloc(count * sizeof *all);
    for (size_t i = 0; all && i < count; ++i)
        all[i] = (vertex){reference_cost(model, z, i), i};
    if (all)
        qsort(all, count, sizeof *all, compare_vertices);
    for (size_t i = 0; all && i < count; ++i)
        code[i] = all[i].code;
    free(all);
    return all != NULL;
}

double reference_share(const reference_model *model, const double *z, size_t code)
{
    double share = 1.0;
    for (size_t j = 0; j < model->tau; ++j)
        share *= 1.0 / (1.0 + exp(-2.0 * coordinate(model, code, j) * z[j]));
    return share;
}

double reference_along(const reference_model *model, const double *z, size_t code)
{
    double sum = 0.0;
    for (size_t j = 0; j < model->tau; ++j)
        sum += coordinate(model, code, j) * z[j];
    return sum;
}

bool reference_is_scored(const reference_model *model)
{
    return reference_scores[model->score].share || reference_scores[model->score].along;
}

double reference_score_share(const reference_model *model, const double *z, size_t code)
{
    return reference_scores[model->score].share ? reference_share(model, z, code) : 1.0;
}

double reference_score(const reference_model *model, const double *z, size_t code)
{
    const double share = reference_score_share(model, z, code);
    return reference_scores[model->score].along ? share * reference_along(model, z, code) : share;
}

double reference_score_terms(const reference_model *model, const double *z)
{
    return reference_scores[model->score].along ? reference_along(model, z, reference_code(model, z)) : 1.0;
}

bool reference_gather(const reference_model *model, const reference_weights *weights, const size_t *code, const double *score, double *y)
{
    double *row = malloc(model->d_out * sizeof *row);
    bool done = row != NULL;
    for (size_t o = 0; done && o < model->d_out; ++o)
        y[o] = weights->output_bias[o];
    for (size_t i = 0; done && i < model->h * model->neighbours; ++i) {
        done = weights->row(weights->row_source, i / model->neighbours, code[i], row);
        for (size_t o = 0; done && o < model->d_out; ++o)
            y[o] += model->scale * score[i] * row[o];
    }
    free(row);
    return done;
}
