/* Input tokens and what the reference makes of them. */
#include "verify_sample.h"

#include "gen/weights/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of their own for inputs, even when the weights were drawn from the same seed. */
static random_state input_seed(uint64_t seed)
{
    random_state random = random_seed(~seed);
    return random_seed(random_bits(&random));
}

void sample_random(const reference_model *model, uint64_t seed, size_t tokens, float *x)
{
    random_state random = input_seed(seed);
    for (size_t token = 0; token < tokens; ++token) {
        const double scale = pow(10.0, 4.0 * random_uniform(&random) - 2.0);
        const double offset = model->norm ? 2.0 * random_normal(&random) : 0.0;
        for (size_t i = 0; i < model->d; ++i, ++x) {
            do
                *x = (float)(scale * (random_normal(&random) + offset));
            while (*x == 0.0f);
        }
    }
}

static const char *const special_names[SAMPLE_SPECIAL] = {"zeros", "minus zeros", "constant", "one element", "far from 0", "tiny values"};

const char *sample_special_name(size_t token)
{
    return special_names[token];
}

void sample_special(const reference_model *model, uint64_t seed, float *x)
{
    random_state random = input_seed(seed);
    const size_t d = model->d;
    for (size_t i = 0; i < d; ++i) {
        x[0 * d + i] = 0.0f;
        x[1 * d + i] = -0.0f;
        x[2 * d + i] = 0.375f; /* sums of it are exact: the mean is, too */
        x[3 * d + i] = i == d / 2 ? -1.5f : 0.0f;
        x[4 * d + i] = (float)(random_normal(&random) + (model->norm ? 1000.0 : 0.0));
        x[5 * d + i] = (float)(1e-20 * random_normal(&random));
    }
}

void sample_free(sample *s)
{
    free(s->x);
    free(s->z);
    free(s->bound);
    free(s->score);
    free(s->score_error);
    free(s->code);
    free(s->row_scale);
    free(s->y);
    free(s->gather_error);
    free(s->error);
    *s = (sample){0};
}

static bool allocate(sample *s)
{
    const size_t bits = s->model->h * s->model->tau, tables = s->tokens * s->model->h;
    s->z = malloc(s->tokens * bits * sizeof *s->z);
    s->bound = malloc(s->tokens * bits * sizeof *s->bound);
    s->score = malloc(tables * sizeof *s->score);
    s->score_error = malloc(tables * sizeof *s->score_error);
    s->code = malloc(tables * sizeof *s->code);
    s->row_scale = malloc(tables * sizeof *s->row_scale);
    s->y = malloc(s->tokens * s->model->d_out * sizeof *s->y);
    s->gather_error = malloc(s->tokens * sizeof *s->gather_error);
    s->error = malloc(s->tokens * sizeof *s->error);
    return s->x && s->z && s->bound && s->score && s->score_error && s->code && s->row_scale && s->y && s->gather_error && s->error;
}

bool sample_create(sample *s, const reference_model *model, const reference_weights *weights, float *x, size_t tokens, double share)
{
    const size_t d = model->d, h = model->h, tau = model->tau;
    *s = (sample){.model = model, .weights = weights, .tokens = tokens, .share = share, .x = x};
    rounding *bounds = rounding_create(model, weights);
    double *input = malloc(2 * d * sizeof *input);
    bool done = allocate(s) && bounds && input;
    for (size_t token = 0; done && token < tokens; ++token) {
        double *z = s->z + token * h * tau, *bound = s->bound + token * h * tau;
        for (size_t i = 0; i < d; ++i)
            input[i] = (double)x[token * d + i];
        reference_norm(model, weights, input, input + d);
        done = reference_project(model, weights, input + d, z) && rounding_project(bounds, input, bound);
        for (size_t k = 0; done && k < h; ++k) {
            s->code[token * h + k] = reference_code(model, z + k * tau);
            s->score[token * h + k] = reference_score(model, z + k * tau);
            s->score_error[token * h + k] = rounding_score(model, z + k * tau, bound + k * tau);
        }
    }
    rounding_free(bounds);
    free(input);
    return done && sample_set_code(s, s->code);
}

bool sample_set_code(sample *s, const size_t *code)
{
    const size_t h = s->model->h;
    bool done = true;
    if (code != s->code)
        memcpy(s->code, code, s->tokens * h * sizeof *code);
    for (size_t token = 0; done && token < s->tokens; ++token) {
        const size_t *own = s->code + token * h;
        const double *score = s->score + token * h;
        for (size_t k = 0; k < h; ++k)
            s->row_scale[token * h + k] = s->weights->row_scale ? s->weights->row_scale(s->weights->row_source, k, own[k]) : 1.0;
        done = reference_gather(s->model, s->weights, own, score, s->y + token * s->model->d_out) &&
               rounding_gather(s->model, s->weights, own, score, s->score_error + token * h, &s->gather_error[token], &s->error[token]);
    }
    return done;
}

double sample_row_scale(const sample *s, size_t token, size_t table, size_t code)
{
    const size_t at = token * s->model->h + table;
    if (code == s->code[at] || !s->weights->row_scale)
        return s->row_scale[at];
    return s->weights->row_scale(s->weights->row_source, table, code);
}

bool sample_near(const sample *s, size_t token, size_t bit)
{
    const size_t at = token * s->model->h * s->model->tau + bit;
    return s->bound[at] > 0.0 && fabs(s->z[at]) <= s->bound[at];
}

static double distance(const float *y, const double *expected, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; ++i)
        sum += ((double)y[i] - expected[i]) * ((double)y[i] - expected[i]);
    return sqrt(sum);
}

static double norm(const double *v, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; ++i)
        sum += v[i] * v[i];
    return sqrt(sum);
}

static double relative(double error, double magnitude)
{
    return error == 0.0 ? 0.0 : error / magnitude;
}

/* A maximum that stays NaN once it has met one. */
static void raise_to(double *maximum, double value)
{
    if (isnan(value) || value > *maximum)
        *maximum = value;
}

/* expected <- the reference's output for the codes, near bits flipped where that brings it closer to y.  work [2][d_out] */
static bool flip_near_bits(const sample *s, size_t token, const float *y, double *expected, double *work)
{
    const reference_model *model = s->model;
    const size_t d_out = model->d_out, tau = model->tau;
    for (size_t k = 0; k < model->h; ++k) {
        size_t code = s->code[token * model->h + k];
        const double factor = model->scale * s->score[token * model->h + k];
        for (size_t j = 0; j < tau; ++j) {
            const size_t flipped = code ^ (size_t)1 << (tau - 1 - j);
            if (!sample_near(s, token, k * tau + j))
                continue;
            if (!s->weights->row(s->weights->row_source, k, code, work) ||
                !s->weights->row(s->weights->row_source, k, flipped, work + d_out))
                return false;
            for (size_t o = 0; o < d_out; ++o)
                work[o] = expected[o] + factor * (work[d_out + o] - work[o]);
            if (distance(y, work, d_out) < distance(y, expected, d_out)) {
                memcpy(expected, work, d_out * sizeof *work);
                code = flipped;
            }
        }
    }
    return true;
}

bool sample_compare(const sample *s, const float *y, size_t tokens, bool only_gather, sample_tally *tally)
{
    const size_t d_out = s->model->d_out;
    double *expected = malloc(3 * d_out * sizeof *expected);
    bool done = expected != NULL;
    for (size_t token = 0; done && token < tokens; ++token, y += d_out) {
        const size_t from = token % s->tokens;
        const double allowed = s->share * (only_gather ? s->gather_error[from] : s->error[from]);
        memcpy(expected, s->y + from * d_out, d_out * sizeof *expected);
        double error = distance(y, expected, d_out), error_relative = relative(error, norm(expected, d_out));
        if (!only_gather && !(error_relative <= SAMPLE_TOLERANCE || error <= allowed)) {
            done = flip_near_bits(s, from, y, expected, expected + d_out);
            error = distance(y, expected, d_out);
            error_relative = relative(error, norm(expected, d_out));
        }
        ++tally->compared;
        if (!(error_relative <= SAMPLE_TOLERANCE)) {
            if (error <= allowed) {
                ++tally->excused;
            } else if (tally->wrong++ == 0) {
                tally->first_wrong = token;
                tally->first_error = error_relative;
            }
        }
        raise_to(&tally->worst, error_relative);
        for (size_t o = 0; o < d_out; ++o)
            raise_to(&tally->worst_absolute, fabs((double)y[o] - expected[o]));
    }
    free(expected);
    return done;
}
