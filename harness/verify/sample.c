/* Input tokens and what the reference makes of them. */
#include "harness/verify/sample.h"

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

double sample_moved_share(const reference_weights *weights)
{
    return 0.25 + 0x1p-15 * weights->input_levels;
}

void sample_free(sample *s)
{
    free(s->x);
    free(s->z);
    free(s->bound);
    free(s->most_cost);
    free(s->near);
    free(s->score);
    free(s->score_error);
    free(s->code);
    free(s->row_scale);
    free(s->y);
    free(s->gather_error);
    free(s->error);
    *s = (sample){0};
}

bool sample_near_bit(const sample *s, size_t token, size_t bit)
{
    const size_t at = token * s->model->h * s->model->tau + bit;
    return s->bound[at] > 0.0 && fabs(s->z[at]) <= s->bound[at];
}

double sample_slack(const sample *s, size_t token, size_t table, size_t code, size_t other)
{
    const size_t tau = s->model->tau, at = (token * s->model->h + table) * tau;
    double slack = 0.0, sum = 0.0;
    for (size_t j = 0; j < tau; ++j) {
        slack += ((code ^ other) >> (tau - 1 - j) & 1) != 0 ? s->bound[at + j] : 0.0;
        sum += fabs(s->z[at + j]);
    }
    return slack + (s->model->neighbours > 1 ? 2.0 * (double)tau * ERROR_BOUNDS_UNIT * sum : 0.0);
}

/* Whether rounding may take vertex `out` in place of `in`, which a kernel has taken. */
static bool may_swap(const sample *s, size_t token, size_t table, size_t in, size_t out)
{
    const reference_model *model = s->model;
    const double *z = s->z + (token * model->h + table) * model->tau, slack = sample_slack(s, token, table, in, out);
    return slack > 0.0 && reference_cost(model, z, out) - reference_cost(model, z, in) <= slack;
}

/* Fills most_cost and near of one table.  vertices [2^tau]: overwritten */
static bool rank_vertices(const sample *s, size_t token, size_t table, size_t *vertices)
{
    const reference_model *model = s->model;
    const size_t count = (size_t)1 << model->tau, m = model->neighbours, at = token * model->h + table;
    const double *z = s->z + at * model->tau;
    s->most_cost[at] = 0.0;
    s->near[at] = false;
    if (m == 1) {
        for (size_t j = 0; j < model->tau; ++j)
            s->near[at] = s->near[at] || sample_near_bit(s, token, table * model->tau + j);
        return true;
    }
    if (!reference_vertices(model, z, vertices))
        return false;
    s->most_cost[at] = reference_cost(model, z, vertices[m - 1]);
    const double slack = sample_slack(s, token, table, 0, count - 1);
    for (size_t in = m; in-- > 0 && s->most_cost[at] - reference_cost(model, z, vertices[in]) <= slack;)
        for (size_t out = m; out < count && reference_cost(model, z, vertices[out]) - s->most_cost[at] <= slack; ++out)
            s->near[at] = s->near[at] || may_swap(s, token, table, vertices[in], vertices[out]);
    return true;
}

/* Makes the pointer at `pointer` point to `count` elements of `size` bytes; what it has stays. */
static bool resize(void *pointer, size_t count, size_t size)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    memory = realloc(memory, count * size + 1);
    if (memory)
        memcpy(pointer, &memory, sizeof memory);
    return memory != NULL;
}

static bool resize_answers(sample *s, size_t tokens)
{
    const size_t slots = tokens * s->model->h * s->model->neighbours;
    return resize(&s->code, slots, sizeof *s->code) && resize(&s->score, slots, sizeof *s->score) &&
           resize(&s->score_error, slots, sizeof *s->score_error) && resize(&s->row_scale, slots, sizeof *s->row_scale) &&
           resize(&s->y, tokens * s->model->d_out, sizeof *s->y) && resize(&s->gather_error, tokens, sizeof *s->gather_error) &&
           resize(&s->error, tokens, sizeof *s->error);
}

/* Score, its error and factor for the vertex in a slot of the sample. */
static void set_slot(sample *s, size_t slot, size_t code)
{
    const reference_model *model = s->model;
    const size_t table = slot / model->neighbours, at = table * model->tau;
    s->code[slot] = code;
    s->score[slot] = reference_score(model, s->z + at, code);
    s->score_error[slot] = error_bounds_score(model, s->z + at, s->bound + at, code);
    s->row_scale[slot] = s->weights->row_scale ? s->weights->row_scale(s->weights->row_source, table % model->h, code) : 1.0;
}

/* y and its errors for the vertices of a token. */
static bool set_output(sample *s, size_t token)
{
    const size_t slots = s->model->h * s->model->neighbours;
    const size_t *code = s->code + token * slots;
    const double *score = s->score + token * slots;
    return reference_gather(s->model, s->weights, code, score, s->y + token * s->model->d_out) &&
           error_bounds_gather(s->model, s->weights, code, score, s->score_error + token * slots, &s->gather_error[token],
                               &s->error[token]);
}

/* All that the reference has to say of one token.  input [2][d], vertices [2^tau]: overwritten */
static bool set_token(sample *s, const error_bounds *bounds, size_t token, double *input, size_t *vertices)
{
    const reference_model *model = s->model;
    const size_t d = model->d, h = model->h, tau = model->tau, m = model->neighbours;
    double *z = s->z + token * h * tau;
    for (size_t i = 0; i < d; ++i)
        input[i] = (double)s->x[token * d + i];
    reference_norm(model, s->weights, input, input + d);
    if (!reference_project(model, s->weights, input + d, z) || !error_bounds_project(bounds, input, s->bound + token * h * tau))
        return false;
    for (size_t k = 0; k < h; ++k) {
        if (!rank_vertices(s, token, k, vertices))
            return false;
        for (size_t n = 0; n < m; ++n)
            set_slot(s, (token * h + k) * m + n, m == 1 ? reference_code(model, z + k * tau) : vertices[n]);
    }
    return set_output(s, token);
}

bool sample_extend(sample *s, float *x, size_t tokens)
{
    const reference_model *model = s->model;
    const size_t tables = tokens * model->h;
    free(s->x);
    s->x = x;
    error_bounds *bounds = error_bounds_create(model, s->weights);
    double *input = malloc(2 * model->d * sizeof *input);
    size_t *vertices = malloc(sizeof *vertices << model->tau);
    bool done = x && bounds && input && vertices && resize(&s->z, tables * model->tau, sizeof *s->z) &&
                resize(&s->bound, tables * model->tau, sizeof *s->bound) && resize(&s->most_cost, tables, sizeof *s->most_cost) &&
                resize(&s->near, tables, sizeof *s->near) && resize_answers(s, tokens);
    for (; done && s->tokens < tokens; s->tokens += done ? 1 : 0)
        done = set_token(s, bounds, s->tokens, input, vertices);
    error_bounds_free(bounds);
    free(input);
    free(vertices);
    return done;
}

/* Takes the vertices code[m] of the table whose slots begin at `at`; those that `from` has there are known, each once. Whether all are.
   place [2^tau]: zeros, also afterwards */
static bool take_table(sample *s, const sample *from, size_t at, const size_t *code, size_t *place)
{
    const size_t m = s->model->neighbours;
    bool all = true;
    for (size_t n = 0; n < m; ++n)
        place[from->code[at + n]] = at + n + 1;
    for (size_t n = 0; n < m; ++n) {
        const size_t known = place[code[n]];
        place[code[n]] = 0;
        if (known == 0) {
            set_slot(s, at + n, code[n]);
            all = false;
            continue;
        }
        s->code[at + n] = code[n];
        s->score[at + n] = from->score[known - 1];
        s->score_error[at + n] = from->score_error[known - 1];
        s->row_scale[at + n] = from->row_scale[known - 1];
    }
    for (size_t n = 0; n < m; ++n)
        place[from->code[at + n]] = 0;
    return all;
}

bool sample_with_codes(sample *s, const sample *from, const size_t *code)
{
    const size_t h = from->model->h, m = from->model->neighbours, d_out = from->model->d_out;
    size_t *place = calloc((size_t)1 << from->model->tau, sizeof *place);
    *s = *from;
    s->code = NULL;
    s->score = s->score_error = s->row_scale = s->y = s->gather_error = s->error = NULL;
    bool done = resize_answers(s, s->tokens) && place;
    for (size_t token = 0; done && token < s->tokens; ++token) {
        bool known = true;
        for (size_t k = 0; k < h; ++k)
            known = take_table(s, from, (token * h + k) * m, code + (token * h + k) * m, place) && known;
        if (!known) {
            done = set_output(s, token);
            continue;
        }
        memcpy(s->y + token * d_out, from->y + token * d_out, d_out * sizeof *s->y);
        s->gather_error[token] = from->gather_error[token];
        s->error[token] = from->error[token];
    }
    free(place);
    return done;
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

/* The output of a token, which is to be brought closer to y. */
typedef struct {
    const sample *of;
    size_t token;
    const float *y;
    double *expected, *work; /* work [2][d_out] */
} nearest;

/* expected <- the reference's output with `out` in place of the slot's vertex where that brings it closer to y; then *code is `out`. */
static bool try_swap(const nearest *n, size_t table, size_t *code, size_t out)
{
    const sample *s = n->of;
    const reference_model *model = s->model;
    const size_t d_out = model->d_out;
    const double *z = s->z + (n->token * model->h + table) * model->tau;
    const double lost = model->scale * reference_score(model, z, *code), gained = model->scale * reference_score(model, z, out);
    double *row = n->work, *other = row + d_out;
    if (!s->weights->row(s->weights->row_source, table, *code, row) || !s->weights->row(s->weights->row_source, table, out, other))
        return false;
    for (size_t o = 0; o < d_out; ++o)
        row[o] = n->expected[o] + gained * other[o] - lost * row[o];
    if (distance(n->y, row, d_out) < distance(n->y, n->expected, d_out)) {
        memcpy(n->expected, row, d_out * sizeof *row);
        *code = out;
    }
    return true;
}

static bool is_taken(const size_t *code, size_t count, size_t wanted)
{
    for (size_t n = 0; n < count; ++n)
        if (code[n] == wanted)
            return true;
    return false;
}

/* expected <- the reference's output for the codes, other vertices in place of near ones where that brings it closer to y.
   code [neighbours] */
static bool swap_near(const nearest *n, size_t *code)
{
    const sample *s = n->of;
    const reference_model *model = s->model;
    const size_t m = model->neighbours, token = n->token;
    for (size_t k = 0; k < model->h; ++k) {
        const size_t at = token * model->h + k;
        const double *z = s->z + at * model->tau, most = s->most_cost[at] + sample_slack(s, token, k, 0, ((size_t)1 << model->tau) - 1);
        memcpy(code, s->code + at * m, m * sizeof *code);
        for (size_t out = 0; s->near[at] && out >> model->tau == 0; ++out) {
            if (reference_cost(model, z, out) > most || is_taken(code, m, out))
                continue;
            for (size_t slot = 0; slot < m && !is_taken(code, m, out); ++slot)
                if (may_swap(s, token, k, code[slot], out) && !try_swap(n, k, &code[slot], out))
                    return false;
        }
    }
    return true;
}

bool sample_compare(const sample *s, const float *y, size_t tokens, bool only_gather, sample_tally *tally)
{
    const size_t d_out = s->model->d_out;
    double *expected = malloc(3 * d_out * sizeof *expected);
    size_t *code = malloc(s->model->neighbours * sizeof *code);
    bool done = expected && code;
    for (size_t token = 0; done && token < tokens; ++token, y += d_out) {
        const size_t from = token % s->tokens;
        const double allowed = s->share * (only_gather ? s->gather_error[from] : s->error[from]);
        memcpy(expected, s->y + from * d_out, d_out * sizeof *expected);
        double error = distance(y, expected, d_out), error_relative = relative(error, norm(expected, d_out));
        if (!only_gather && !(error_relative <= SAMPLE_TOLERANCE || error <= allowed)) {
            done = swap_near(&(nearest){s, from, y, expected, expected + d_out}, code);
            error = distance(y, expected, d_out);
            error_relative = relative(error, norm(expected, d_out));
        }
        ++tally->compared;
        if (!(error_relative <= SAMPLE_TOLERANCE)) {
            const double same = s->share * s->gather_error[from] + SAMPLE_SAME_ROUNDING * allowed;
            if (error <= allowed) {
                ++tally->excused;
                tally->moved += s->weights->rounds_inputs && error > same ? 1 : 0;
            } else if (tally->wrong++ == 0) {
                tally->first_wrong = token;
                tally->first_error = error_relative;
            }
        }
        raise_to(&tally->worst, error_relative);
        for (size_t o = 0; o < d_out; ++o)
            raise_to(&tally->worst_absolute, fabs((double)y[o] - expected[o]));
    }
    free(code);
    free(expected);
    return done;
}
