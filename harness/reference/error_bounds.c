/* Bounds of what float32 rounding does to z, scores and outputs. */
#include "harness/reference/error_bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct error_bounds {
    const reference_model *model;
    const reference_weights *weights;
    double *frobenius;   /* BH4 [R][4]: |W_s|^2 */
    double *folded_bias; /* [h tau]: what the norm's beta adds to z, as a magnitude */
    double *row_gain;    /* dense [h tau][2]: (W_j g)^2 + |W_j∘g|^2, the shift's way into z; NULL otherwise */
};

static double square(double v)
{
    return v * v;
}

static double mean_square(const double *v, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; ++i)
        sum += v[i] * v[i];
    return sum / (double)count;
}

/* The roundings of one step of a repeat. */
static double roundings(const reference_model *model, size_t repeat, int step)
{
    const size_t padded = reference_padded(model);
    const size_t used = model->h * model->tau - repeat * padded;
    const size_t chain = step == 3 && used <= padded / 2 ? padded : model->block;
    return (double)chain + log2((double)padded);
}

/* What rounding a step's inputs adds to their variance, in units of u^2 F^2; 0 where kernels do not round them. */
static double input_variance(const reference_weights *weights, const double *inputs, size_t count)
{
    double largest = 0.0;
    if (weights->input_levels == 0.0)
        return 0.0;
    for (size_t i = 0; i < count; ++i)
        largest = fmax(largest, fabs(inputs[i]));
    return square(ERROR_BOUNDS_INPUT_FACTOR / ERROR_BOUNDS_FACTOR * largest / weights->input_levels / ERROR_BOUNDS_UNIT) / 12.0;
}

/* y <- the four steps of a repeat; power[s] is y's mean square after step s, rounded[s] input_variance() before it.  y, temporary [N],
   power, rounded [4]. */
static void run_repeat(const reference_model *model, const reference_weights *weights, size_t repeat, double *y, double *temporary,
                       double *power, double *rounded)
{
    const size_t padded = reference_padded(model);
    for (size_t step = 0; step < 4; ++step) {
        rounded[step] = input_variance(weights, y, padded);
        reference_bh4_step(model, weights->projection + (repeat * 4 + step) * padded * model->block, y, temporary);
        power[step] = mean_square(y, padded);
    }
}

static bool prepare_bh4(error_bounds *bounds)
{
    const reference_model *model = bounds->model;
    const reference_weights *weights = bounds->weights;
    const size_t padded = reference_padded(model), repeats = reference_repeats(model), size = padded * model->block;
    double *y = malloc(2 * padded * sizeof *y);
    bounds->frobenius = malloc(repeats * 4 * sizeof *bounds->frobenius);
    if (!y || !bounds->frobenius) {
        free(y);
        return false;
    }
    for (size_t i = 0; i < repeats * 4; ++i)
        bounds->frobenius[i] = mean_square(weights->projection + i * size, size) * (double)size;
    for (size_t repeat = 0; model->norm && repeat < repeats; ++repeat) {
        double power[4], rounded[4];
        for (size_t i = 0; i < padded; ++i)
            y[i] = i < model->d ? weights->norm_bias[i] : 0.0;
        run_repeat(model, weights, repeat, y, y + padded, power, rounded);
        for (size_t j = repeat * padded; j < (repeat + 1) * padded && j < model->h * model->tau; ++j)
            bounds->folded_bias[j] = model->decay * sqrt(power[3]);
    }
    free(y);
    return true;
}

static bool prepare_dense(error_bounds *bounds)
{
    const reference_model *model = bounds->model;
    const reference_weights *weights = bounds->weights;
    const size_t count = model->h * model->tau;
    if (!model->norm)
        return true;
    bounds->row_gain = malloc(count * sizeof *bounds->row_gain);
    if (!bounds->row_gain)
        return false;
    for (size_t j = 0; j < count; ++j) {
        double along_bias = 0.0, along_gain = 0.0, gain = 0.0;
        for (size_t i = 0; i < model->d; ++i) {
            const double w = weights->projection[j * model->d + i];
            along_bias += w * weights->norm_bias[i];
            along_gain += w * weights->norm_weight[i];
            gain += square(w * weights->norm_weight[i]);
        }
        bounds->folded_bias[j] = fabs(along_bias);
        bounds->row_gain[j] = square(along_gain) + gain;
    }
    return true;
}

error_bounds *error_bounds_create(const reference_model *model, const reference_weights *weights)
{
    error_bounds *bounds = calloc(1, sizeof *bounds);
    if (!bounds)
        return NULL;
    bounds->model = model;
    bounds->weights = weights;
    bounds->folded_bias = calloc(model->h * model->tau, sizeof *bounds->folded_bias);
    if (bounds->folded_bias && (model->projection == REFERENCE_BH4 ? prepare_bh4(bounds) : prepare_dense(bounds)))
        return bounds;
    error_bounds_free(bounds);
    return NULL;
}

void error_bounds_free(error_bounds *bounds)
{
    if (!bounds)
        return;
    free(bounds->frobenius);
    free(bounds->folded_bias);
    free(bounds->row_gain);
    free(bounds);
}

/* The mean's part of the LayerNorm's error, as a variance in units of u^2 and per gain: d/4 (mean / sqrt(var + eps))^2. */
static double shift_variance(const reference_model *model, const double *x)
{
    double mean, variance;
    reference_moments(model, x, &mean, &variance);
    return (double)model->d / 4.0 * square(mean) / (variance + model->norm_eps);
}

/* The same of the projection's input, which kernels round before the norm's gain and offset.  centred [d]: overwritten */
static double first_input_variance(const error_bounds *bounds, const double *x, double *centred)
{
    const reference_model *model = bounds->model;
    double mean = 0.0, variance = 1.0;
    if (model->norm)
        reference_moments(model, x, &mean, &variance);
    for (size_t i = 0; i < model->d; ++i)
        centred[i] = model->norm ? (x[i] - mean) / sqrt(variance + model->norm_eps) : x[i];
    return input_variance(bounds->weights, centred, model->d);
}

/* Squared errors in units of u^2 of the norm's output.  error [d] */
static void norm_errors(const error_bounds *bounds, const double *x, const double *normalised, double *error)
{
    const reference_model *model = bounds->model;
    if (!model->norm) {
        memset(error, 0, model->d * sizeof *error);
        return;
    }
    const double shift = shift_variance(model, x);
    for (size_t i = 0; i < model->d; ++i) {
        const double gain = bounds->weights->norm_weight[i], scaled = normalised[i] - bounds->weights->norm_bias[i];
        error[i] = shift * square(gain) + (double)model->d * square(scaled) + square(normalised[i]);
    }
}

static void project_bh4(const error_bounds *bounds, const double *normalised, const double *error, double input, double *work,
                        double *bound)
{
    const reference_model *model = bounds->model;
    const reference_weights *weights = bounds->weights;
    const size_t padded = reference_padded(model), count = model->h * model->tau;
    double first = 0.0;
    for (size_t i = 0; i < model->d; ++i)
        first += (error[i] + input * (model->norm ? square(weights->norm_weight[i]) : 1.0)) / (double)padded;
    for (size_t repeat = 0; repeat < reference_repeats(model); ++repeat) {
        double variance = first, power[4], rounded[4];
        for (size_t i = 0; i < padded; ++i)
            work[i] = i < model->d ? normalised[i] : 0.0;
        run_repeat(model, weights, repeat, work, work + padded, power, rounded);
        for (int step = 0; step < 4; ++step)
            variance = bounds->frobenius[repeat * 4 + (size_t)step] * (variance + (step > 0 ? rounded[step] : 0.0)) +
                       roundings(model, repeat, step) * power[step];
        for (size_t i = 0, j = repeat * padded; i < padded && j < count; ++i, ++j) {
            const double rest = 1.0 - model->decay, passed = i < model->d ? fabs(normalised[i]) : 0.0;
            const double added = fabs(weights->bias[j]) + rest * passed + bounds->folded_bias[j];
            bound[j] = square(model->decay) * variance + roundings(model, repeat, 3) * square(added);
            bound[j] += i < model->d ? square(rest) * error[i] : 0.0;
        }
    }
}

static void project_dense(const error_bounds *bounds, const double *x, const double *normalised, const double *error, double input,
                          double *bound)
{
    const reference_model *model = bounds->model;
    const reference_weights *weights = bounds->weights;
    const double terms = (double)model->d;
    const double shift = model->norm ? shift_variance(model, x) : 0.0;
    for (size_t j = 0; j < model->h * model->tau; ++j) {
        double sum = 0.0, squares = 0.0, gain = 0.0;
        for (size_t i = 0; i < model->d; ++i) {
            const double weight = weights->projection[j * model->d + i], product = weight * normalised[i];
            sum += product;
            squares += product * product;
            gain += square(weight * (model->norm ? weights->norm_weight[i] : 1.0));
        }
        const double passed = model->rest * fabs(reference_passed(model, normalised, j));
        bound[j] = input * gain + terms * (squares + square(fabs(weights->bias[j]) + passed + bounds->folded_bias[j])) +
                   square(model->rest) * reference_passed(model, error, j);
        if (model->norm)
            bound[j] += shift * bounds->row_gain[j] + terms * square(fabs(sum) + bounds->folded_bias[j]);
    }
}

bool error_bounds_project(const error_bounds *bounds, const double *x, double *bound)
{
    const reference_model *model = bounds->model;
    const size_t padded = reference_padded(model);
    double *work = malloc((2 * model->d + 2 * padded) * sizeof *work);
    if (!work)
        return false;
    double *normalised = work, *error = work + model->d;
    const double input = first_input_variance(bounds, x, normalised);
    reference_norm(model, bounds->weights, x, normalised);
    norm_errors(bounds, x, normalised, error);
    if (model->projection == REFERENCE_BH4)
        project_bh4(bounds, normalised, error, input, error + model->d, bound);
    else
        project_dense(bounds, x, normalised, error, input, bound);
    for (size_t j = 0; j < model->h * model->tau; ++j)
        bound[j] = ERROR_BOUNDS_FACTOR * ERROR_BOUNDS_UNIT * sqrt(bound[j]);
    free(work);
    return true;
}

/* Both factors grow with every z_j that moves towards the vertex: their extremes are where all are moved so, or away from it. What is no
   factor counts for nothing. */
double error_bounds_score(const reference_model *model, const double *z, const double *bound, size_t code)
{
    const reference_score_row *row = &reference_scores[model->score];
    const double score = reference_score(model, z, code);
    double share[2] = {1.0, 1.0}, along[2] = {0.0, 0.0}, error = 0.0;
    for (int end = 0; end < 2; ++end)
        for (size_t j = 0; j < model->tau; ++j) {
            const double towards = (code >> (model->tau - 1 - j) & 1) != 0 ? z[j] : -z[j];
            const double moved = towards + (end ? bound[j] : -bound[j]);
            share[end] *= 1.0 / (1.0 + exp(-2.0 * moved));
            along[end] += moved;
        }
    for (int corner = 0; corner < 4; ++corner) {
        const double moved = (row->share ? share[corner & 1] : 1.0) * (row->along ? along[corner >> 1] : 1.0);
        error = fmax(error, fabs(moved - score));
    }
    return error;
}

bool error_bounds_gather(const reference_model *model, const reference_weights *weights, const size_t *code, const double *score,
                         const double *score_error, double *own, double *total)
{
    const size_t m = model->neighbours;
    double *row = malloc(model->d_out * sizeof *row);
    bool done = row != NULL;
    double terms = mean_square(weights->output_bias, model->d_out), from_scores = 0.0, integers = 0.0, largest = 0.0;
    for (size_t k = 0; done && k < model->h; ++k) {
        double from_table = 0.0;
        for (size_t i = k * m; done && i < (k + 1) * m; ++i) {
            done = weights->row(weights->row_source, k, code[i], row);
            const double power = done ? mean_square(row, model->d_out) * square(model->scale) : 0.0;
            terms += power * square(score[i]);
            from_table += sqrt(power) * score_error[i];
            if (weights->score_levels > 0.0) {
                const double scale = weights->row_scale(weights->row_source, k, code[i]);
                integers += scale > 0.0 ? power / square(scale) : 0.0;
                largest = fmax(largest, scale * score[i]);
            }
        }
        from_scores += square(from_table);
    }
    free(row);
    terms *= square(ERROR_BOUNDS_FACTOR * ERROR_BOUNDS_UNIT) * (double)(model->h * m + 1);
    if (weights->score_levels > 0.0)
        terms += square(ERROR_BOUNDS_SCORE_FACTOR * largest / weights->score_levels) / 12.0 * integers;
    *own = sqrt(terms * (double)model->d_out);
    *total = sqrt((terms + from_scores) * (double)model->d_out);
    return done;
}
