/* LookupFFN in float64, straight from its definitions. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static bool project_bh4(const reference_model *model, const reference_weights *weights, const double *normalised, double *z)
{
    const size_t padded = reference_padded(model), count = model->h * model->tau;
    double *y = malloc(2 * padded * sizeof *y);
    if (!y)
        return false;
    const double *blocks = weights->projection;
    for (size_t repeat = 0; repeat < reference_repeats(model); ++repeat) {
        for (size_t i = 0; i < padded; ++i)
            y[i] = i < model->d ? normalised[i] : 0.0;
        for (int step = 0; step < 4; ++step, blocks += padded * model->block)
            reference_bh4_step(model, blocks, y, y + padded);
        for (size_t i = 0, j = repeat * padded; i < padded && j < count; ++i, ++j)
            z[j] = model->decay * y[i] + (1.0 - model->decay) * (i < model->d ? normalised[i] : 0.0) + weights->bias[j];
    }
    free(y);
    return true;
}

bool reference_project(const reference_model *model, const reference_weights *weights, const double *normalised, double *z)
{
    if (model->projection == REFERENCE_BH4)
        return project_bh4(model, weights, normalised, z);
    for (size_t j = 0; j < model->h * model->tau; ++j) {
        double sum = 0.0;
        for (size_t i = 0; i < model->d; ++i)
            sum += weights->projection[j * model->d + i] * normalised[i];
        z[j] = sum + weights->bias[j];
    }
    return true;
}

size_t reference_code(const reference_model *model, const double *z)
{
    size_t code = 0;
    for (size_t j = 0; j < model->tau; ++j)
        code = 2 * code + (z[j] > 0.0 ? 1 : 0);
    return code;
}

double reference_score(const reference_model *model, const double *z)
{
    double probability = 1.0, sum = 0.0;
    for (size_t j = 0; j < model->tau; ++j) {
        probability *= 1.0 / (1.0 + exp(-2.0 * fabs(z[j])));
        sum += fabs(z[j]);
    }
    return model->score == REFERENCE_GELU ? probability * sum : probability;
}

bool reference_gather(const reference_model *model, const reference_weights *weights, const size_t *code, const double *score, double *y)
{
    double *row = malloc(model->d_out * sizeof *row);
    bool done = row != NULL;
    for (size_t o = 0; done && o < model->d_out; ++o)
        y[o] = weights->output_bias[o];
    for (size_t k = 0; done && k < model->h; ++k) {
        done = weights->row(weights->row_source, k, code[k], row);
        for (size_t o = 0; done && o < model->d_out; ++o)
            y[o] += model->scale * score[k] * row[o];
    }
    free(row);
    return done;
}
