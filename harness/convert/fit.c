/* See fit.h. The squared error's gradient goes through the kernels of training; AdamW without decay moves the projection and the biases,
   lazy Adam the rows of the tables. */
#include "harness/convert/fit.h"

#include "harness/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-24;

struct fit {
    fit_lookup lookup;
    fit_teacher teacher;
    size_t most;
    float *projection, *projection_bias, *bias, *tables, *state, *prepared; /* parameters; state: of Adam */
    float *gradient, *first, *second;                                       /* of projection, its bias, bias: one after the other */
    float *x, *target, *y, *dy, *dx, *z, *score, *slope, *sums;
    uint16_t *code;
    uint32_t *uses;
    void *scratch;
    float *in, *hidden, *gate, *out; /* a tile of the dense FFN */
    bool stale;                      /* prepared is */
    uint16_t *kept_code;             /* collected: [tokens][slots] */
    float *kept_score, *kept_rest;
    size_t kept, kept_room;
    double *sum, error; /* measured: sums of the outputs and of their squares, and of squared errors */
    double squares;
    size_t measured;
};

static size_t dense_count(const fit *f)
{
    return f->lookup.projection + f->lookup.bits + f->lookup.d;
}

static size_t state_count(const fit *f)
{
    return f->lookup.h * f->lookup.table_rows * f->lookup.pitch;
}

void fit_free(fit *f)
{
    if (!f)
        return;
    void *all[] = {f->projection, f->projection_bias, f->bias,  f->tables, f->state,     f->prepared,   f->gradient,
                   f->first,      f->second,          f->x,     f->target, f->y,         f->dy,         f->dx,
                   f->z,          f->score,           f->slope, f->sums,   f->code,      f->uses,       f->scratch,
                   f->in,         f->hidden,          f->gate,  f->out,    f->kept_code, f->kept_score, f->kept_rest,
                   f->sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        free(all[i]);
    free(f);
}

fit *fit_create(const fit_lookup *lookup, const fit_teacher *teacher, size_t most)
{
    fit *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->lookup = *lookup;
    f->teacher = *teacher;
    f->most = round_up(most, lookup->tile);
    f->stale = true;
    const size_t d = lookup->d, dense = dense_count(f);
    struct {
        void *to;
        size_t bytes;
    } list[] = {
        {&f->projection, lookup->projection * 4},
        {&f->projection_bias, lookup->bits * 4},
        {&f->bias, d * 4},
        {&f->tables, state_count(f) * 4},
        {&f->state, state_count(f) * 8},
        {&f->prepared, lookup->prepared * 4},
        {&f->gradient, dense * 4},
        {&f->first, dense * 4},
        {&f->second, dense * 4},
        {&f->x, f->most * d * 4},
        {&f->target, f->most * d * 4},
        {&f->y, f->most * d * 4},
        {&f->dy, f->most * d * 4},
        {&f->dx, f->most * d * 4},
        {&f->z, f->most * lookup->z * 4},
        {&f->score, f->most * lookup->slots * 4},
        {&f->slope, f->most * lookup->slots * 4},
        {&f->sums, lookup->sums * 4},
        {&f->code, f->most * lookup->slots * 2},
        {&f->uses, lookup->h * lookup->table_rows * 4},
        {&f->scratch, lookup->scratch + 8 * lookup->neighbours * f->most},
        {&f->in, teacher->d * teacher->tile * 4},
        {&f->hidden, teacher->f * teacher->tile * 4},
        {&f->gate, teacher->f * teacher->tile * 4},
        {&f->out, teacher->d * teacher->tile * 4},
        {&f->sum, d * sizeof(double)},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
        void *memory = aligned_memory(list[i].bytes);
        if (!memory) {
            fit_free(f);
            return NULL;
        }
        memcpy(list[i].to, &memory, sizeof memory);
    }
    return f;
}

float *fit_field(fit *f, const char *name, size_t *count)
{
    f->stale = true;
    if (strcmp(name, "projection") == 0) {
        *count = f->lookup.projection;
        return f->projection;
    }
    if (strcmp(name, "projection_bias") == 0) {
        *count = f->lookup.bits;
        return f->projection_bias;
    }
    if (strcmp(name, "bias") == 0) {
        *count = f->lookup.d;
        return f->bias;
    }
    *count = state_count(f);
    return f->tables;
}

/* x = norm(u). */
static void normalise(const fit_teacher *t, const float *u, size_t tokens, float *x)
{
    const size_t d = t->d;
    for (size_t token = 0; token < tokens; ++token, u += d, x += d) {
        double mean = 0, square = 0;
        for (size_t i = 0; i < d && !t->rms; ++i)
            mean += (double)u[i];
        mean /= (double)d;
        for (size_t i = 0; i < d; ++i)
            square += ((double)u[i] - mean) * ((double)u[i] - mean);
        const double factor = 1 / sqrt(square / (double)d + t->eps);
        for (size_t i = 0; i < d; ++i)
            x[i] = (float)(((double)u[i] - mean) * factor) * t->gain[i] + (t->offset ? t->offset[i] : 0.0f);
    }
}

static float activated(fit_activation kind, float v)
{
    switch (kind) {
    case FIT_RELU: return v > 0.0f ? v : 0.0f;
    case FIT_GELU: return 0.5f * v * (1.0f + erff(v * 0.70710678f));
    case FIT_GELU_TANH: return 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    default: return v / (1.0f + expf(-v));
    }
}

/* y = the dense FFN's output for x[tokens][d]. */
static void teach(fit *f, const float *x, size_t tokens, float *y)
{
    const fit_teacher *t = &f->teacher;
    for (size_t first = 0; first < tokens; first += t->tile) {
        const size_t here = smaller(t->tile, tokens - first);
        t->input.load(x + first * t->d, here, f->in);
        const fit_weights input = {.projection = t->input.prepared, .projection_bias = t->input.bias};
        t->input.product(&input, f->in, f->hidden, 1);
        for (size_t i = 0; i < t->f * t->tile; ++i)
            f->hidden[i] = activated(t->activation, f->hidden[i]);
        if (t->gated) {
            const fit_weights gate = {.projection = t->gate.prepared, .projection_bias = t->gate.bias};
            t->gate.product(&gate, f->in, f->gate, 1);
            for (size_t i = 0; i < t->f * t->tile; ++i)
                f->hidden[i] *= f->gate[i];
        }
        const fit_weights output = {.projection = t->output.prepared, .projection_bias = t->output.bias};
        t->output.product(&output, f->hidden, f->out, 1);
        for (size_t token = 0; token < here; ++token)
            for (size_t i = 0; i < t->d; ++i)
                y[(first + token) * t->d + i] = f->out[i * t->tile + token];
    }
}

static fit_parameters parameters_of(fit *f)
{
    return (fit_parameters){f->projection, f->projection_bias, f->bias, f->tables, f->state, f->prepared};
}

/* x, target and y of u[tokens][d]. */
static void forward(fit *f, const float *u, size_t tokens)
{
    const fit_parameters p = parameters_of(f);
    normalise(&f->teacher, u, tokens, f->x);
    teach(f, f->x, tokens, f->target);
    if (f->stale)
        f->lookup.prepare(&p, f->prepared, f->scratch);
    f->stale = false;
    f->lookup.forward(&p, f->x, f->y, tokens, f->z, f->code, f->score, f->scratch);
}

void fit_centre(fit *f, const float *u, size_t tokens)
{
    normalise(&f->teacher, u, tokens, f->x);
    teach(f, f->x, tokens, f->target);
    for (size_t i = 0; i < f->lookup.d; ++i) {
        double sum = 0;
        for (size_t token = 0; token < tokens; ++token)
            sum += (double)f->target[token * f->lookup.d + i];
        f->bias[i] = (float)(sum / (double)tokens);
    }
}

/* Adam on `count` parameters from place `at` of the moments on. */
static void move(fit *f, float *parameters, size_t at, size_t count, double rate, double c1, double c2)
{
    for (size_t i = 0; i < count; ++i) {
        const double g = (double)f->gradient[at + i];
        const double first = beta1 * (double)f->first[at + i] + (1 - beta1) * g;
        const double second = beta2 * (double)f->second[at + i] + (1 - beta2) * g * g;
        f->first[at + i] = (float)first;
        f->second[at + i] = (float)second;
        parameters[i] -= (float)(rate * first * c1 / (sqrt(second * c2) + 1e-12));
    }
}

void fit_step(fit *f, const float *u, size_t tokens, size_t n, double projection_rate, double table_rate)
{
    const fit_lookup *l = &f->lookup;
    const fit_parameters p = parameters_of(f);
    const double c1 = 1 / (1 - pow(beta1, (double)n)), c2 = 1 / (1 - pow(beta2, (double)n));
    const fit_rates rates = {(float)table_rate, (float)epsilon, (float)beta1, (float)beta2, (float)c1, (float)c2, 1};
    forward(f, u, tokens);
    for (size_t i = 0; i < tokens * l->d; ++i)
        f->dy[i] = (f->y[i] - f->target[i]) / (float)tokens;
    l->rows(&p, &rates, f->dy, tokens, f->code, f->score, f->slope, NULL, 0, l->h, f->scratch);
    memset(f->sums, 0, l->sums * sizeof *f->sums);
    l->project(&p, f->x, f->dy, tokens, f->z, f->code, f->slope, f->dx, f->sums, f->scratch);
    memset(f->gradient, 0, dense_count(f) * sizeof *f->gradient);
    l->finish(f->sums, 1, f->gradient, f->gradient + l->projection, f->gradient + l->projection + l->bits, f->scratch);
    move(f, f->projection, 0, l->projection, projection_rate, c1, c2);
    move(f, f->projection_bias, l->projection, l->bits, projection_rate, c1, c2);
    move(f, f->bias, l->projection + l->bits, l->d, table_rate, c1, c2);
    f->stale = true;
}

/* Where the scores of a table and a token begin: [tiles][slots][whole]. */
static size_t place_of(const fit_lookup *l, size_t token, size_t slot)
{
    return (token / l->whole * l->slots + slot) * l->whole + token % l->whole;
}

bool fit_collect(fit *f, const float *u, size_t tokens)
{
    const fit_lookup *l = &f->lookup;
    forward(f, u, tokens);
    if (f->kept + tokens > f->kept_room) {
        const size_t room = 2 * (f->kept + tokens);
        uint16_t *code = realloc(f->kept_code, room * l->slots * sizeof *code);
        f->kept_code = code ? code : f->kept_code;
        float *score = realloc(f->kept_score, room * l->slots * sizeof *score);
        f->kept_score = score ? score : f->kept_score;
        float *rest = realloc(f->kept_rest, room * l->d * sizeof *rest);
        f->kept_rest = rest ? rest : f->kept_rest;
        if (!code || !score || !rest)
            return false;
        f->kept_room = room;
    }
    for (size_t token = 0; token < tokens; ++token) {
        for (size_t slot = 0; slot < l->slots; ++slot) {
            f->kept_code[(f->kept + token) * l->slots + slot] = f->code[place_of(l, token, slot)];
            f->kept_score[(f->kept + token) * l->slots + slot] = f->score[place_of(l, token, slot)];
        }
        for (size_t i = 0; i < l->d; ++i)
            f->kept_rest[(f->kept + token) * l->d + i] = f->target[token * l->d + i] - f->y[token * l->d + i];
    }
    f->kept += tokens;
    return true;
}

void fit_solve(fit *f, size_t sweeps, double ridge)
{
    const fit_lookup *l = &f->lookup;
    /* changes of the rows of one table: sums of score times residual, then what is added; and sums of squared scores */
    float *change = f->state;
    float *weight = f->state + l->table_rows * l->pitch;
    for (size_t sweep = 0; sweep < sweeps; ++sweep)
        for (size_t table = 0; table < l->h; ++table) {
            float *rows = f->tables + table * l->table_rows * l->pitch;
            memset(change, 0, l->table_rows * l->pitch * sizeof *change);
            memset(weight, 0, l->table_rows * sizeof *weight);
            for (size_t token = 0; token < f->kept; ++token)
                for (size_t n = 0; n < l->neighbours; ++n) {
                    const size_t at = token * l->slots + table * l->neighbours + n;
                    const float score = f->kept_score[at], *rest = f->kept_rest + token * l->d;
                    float *to = change + f->kept_code[at] * l->pitch;
                    weight[f->kept_code[at]] += score * score;
                    for (size_t i = 0; i < l->d; ++i)
                        to[i] += score * rest[i];
                }
            /* several rows of a table for a token share its residual: half a step each keeps sweeps from overshooting */
            const float share = 1.0f / (float)l->neighbours;
            for (size_t row = 0; row < l->table_rows; ++row) {
                const float factor = weight[row] > 0.0f ? share / (weight[row] + (float)ridge) : 0.0f;
                for (size_t i = 0; i < l->d; ++i) {
                    float *to = change + row * l->pitch + i;
                    *to = factor * (*to - (float)ridge * rows[row * l->pitch + i]);
                    rows[row * l->pitch + i] += *to;
                }
            }
            for (size_t token = 0; token < f->kept; ++token)
                for (size_t n = 0; n < l->neighbours; ++n) {
                    const size_t at = token * l->slots + table * l->neighbours + n;
                    const float score = f->kept_score[at], *from = change + f->kept_code[at] * l->pitch;
                    float *rest = f->kept_rest + token * l->d;
                    for (size_t i = 0; i < l->d; ++i)
                        rest[i] -= score * from[i];
                }
        }
    memset(f->state, 0, state_count(f) * 2 * sizeof *f->state);
    f->stale = true;
}

void fit_hash_rows(fit *f, const float *in_rows, const float *out_rows, size_t count)
{
    const fit_lookup *l = &f->lookup;
    const fit_parameters p = parameters_of(f);
    if (f->stale)
        l->prepare(&p, f->prepared, f->scratch);
    for (size_t first = 0; first < count; first += f->most) {
        const size_t here = smaller(f->most, count - first);
        l->forward(&p, in_rows + first * l->d, f->y, here, f->z, f->code, f->score, f->scratch);
        for (size_t row = 0; row < here; ++row)
            for (size_t table = 0; table < l->h; ++table) {
                float *to = f->tables + (table * l->table_rows + f->code[place_of(l, row, table * l->neighbours)]) * l->pitch;
                for (size_t i = 0; i < l->d; ++i)
                    to[i] += out_rows[(first + row) * l->d + i];
            }
    }
    f->stale = true;
}

void fit_measure(fit *f, const float *u, size_t tokens)
{
    const fit_lookup *l = &f->lookup;
    forward(f, u, tokens);
    for (size_t i = 0; i < tokens * l->d; ++i) {
        const double target = (double)f->target[i], rest = target - (double)f->y[i];
        f->sum[i % l->d] += target;
        f->squares += target * target;
        f->error += rest * rest;
    }
    for (size_t token = 0; token < tokens; ++token)
        for (size_t slot = 0; slot < l->slots; ++slot)
            ++f->uses[slot / l->neighbours * l->table_rows + f->code[place_of(l, token, slot)]];
    f->measured += tokens;
}

double fit_unexplained(const fit *f)
{
    double variance = f->squares;
    for (size_t i = 0; i < f->lookup.d; ++i)
        variance -= f->sum[i] * f->sum[i] / (double)f->measured;
    return f->error / variance;
}

void fit_uses(const fit *f, double *share, double *entropy)
{
    const fit_lookup *l = &f->lookup;
    const double total = (double)(f->measured * l->neighbours);
    size_t used = 0;
    *entropy = 0;
    for (size_t row = 0; row < l->h * l->table_rows; ++row) {
        used += f->uses[row] > 0;
        if (f->uses[row] > 0)
            *entropy -= (double)f->uses[row] / total * log2((double)f->uses[row] / total) / (double)l->h;
    }
    *share = (double)used / (double)(l->h * l->table_rows);
}
