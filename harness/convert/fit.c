/* See fit.h. The squared error's gradient goes through the kernels of training; Adam moves the projection's folded weights and the biases,
   row-wise Adagrad, whose sums fade, the tables. */
#include "harness/convert/fit.h"

#include "harness/base/memory.h"
#include "harness/convert/imitate.h"
#include "harness/convert/projection.h"
#include "harness/train/optimiser.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float beta1 = 0.9f, beta2 = 0.98f, epsilon = 1e-24f;
/* What a step leaves of a row's sum of squared gradients: sums of all steps make the last steps of a long fit too small. Nearly every
   step meets nearly every row, so all may fade together. */
static const float fade = 0.9f;

/* Weights in rows of `width` that are rounded one by one for passes forward. */
typedef struct {
    rounding how;
    float *values, *lost; /* [rows][pitch]; what rounding takes from them (rounding_take) */
    size_t rows, width, pitch;
} rounded_weights;

struct fit {
    fit_lookup lookup, linear;
    fit_teacher teacher;
    fit_dense rest; /* the last product without neurons that stay beside; else that of the teacher */
    size_t most;
    float *projection, *projection_bias, *bias, *tables, *state, *prepared; /* parameters; state: of Adagrad, [rows] */
    float *folded, *first, *second; /* the projection, folded; averages, laid out as the sums of gradients */
    float *target, *y, *dy, *dx, *z, *score, *slope, *sums;
    uint16_t *code;
    uint32_t *uses;
    void *scratch;
    float *in, *hidden, *gate, *out; /* a tile of the dense FFN */
    bool stale, refold;              /* prepared is; folded is */
    rounded_weights rounds[2];       /* round_count of them; taken: they are rounded now */
    size_t round_count;
    double *work; /* of the widest row */
    float *scales;
    bool taken;
    uint16_t *kept_code; /* collected: [tokens][slots] */
    float *kept_score, *kept_rest;
    size_t kept, kept_room;
    double *sum, error; /* measured: sums of the outputs and of their squares, and of squared errors */
    double squares;
    size_t measured;
    imitate_moments moments; /* of what was observed */
    double *outputs;         /* sums of the targets */
};

static size_t rows_of(const fit *f)
{
    return f->lookup.h * f->lookup.table_rows;
}

void fit_free(fit *f)
{
    if (!f)
        return;
    void *all[] = {f->projection,
                   f->projection_bias,
                   f->bias,
                   f->tables,
                   f->state,
                   f->prepared,
                   f->folded,
                   f->first,
                   f->second,
                   f->target,
                   f->y,
                   f->dy,
                   f->dx,
                   f->z,
                   f->score,
                   f->slope,
                   f->sums,
                   f->code,
                   f->uses,
                   f->scratch,
                   f->in,
                   f->hidden,
                   f->gate,
                   f->out,
                   f->kept_code,
                   f->kept_score,
                   f->kept_rest,
                   f->sum,
                   f->moments.x,
                   f->moments.hidden,
                   f->outputs,
                   f->moments.squares,
                   f->moments.products,
                   f->rounds[0].lost,
                   f->rounds[1].lost,
                   f->work,
                   f->scales};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        free(all[i]);
    free(f);
}

fit *fit_create(const fit_lookup *lookup, const fit_lookup *linear, const fit_teacher *teacher, size_t most)
{
    fit *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->lookup = *lookup;
    if (linear)
        f->linear = *linear;
    f->teacher = *teacher;
    f->rest = teacher->output;
    f->most = round_up(most, lookup->tile);
    f->stale = f->refold = true;
    const size_t d = lookup->d;
    struct {
        void *to;
        size_t bytes;
    } list[] = {
        {&f->projection, lookup->projection * 4},
        {&f->projection_bias, lookup->bits * 4},
        {&f->bias, d * 4},
        {&f->tables, rows_of(f) * lookup->pitch * 4},
        {&f->state, rows_of(f) * 4},
        {&f->prepared, lookup->prepared * 4},
        {&f->folded, lookup->projection * 4},
        {&f->first, lookup->sums * 4},
        {&f->second, lookup->sums * 4},
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
        {&f->outputs, d * sizeof(double)},
        {&f->moments.x, d * sizeof(double)},
        {&f->moments.products, d * d * 4},
        {&f->moments.hidden, teacher->f * sizeof(double)},
        {&f->moments.squares, teacher->f * sizeof(double)},
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

bool fit_round(fit *f, const rounding *tables, const rounding *projection)
{
    const fit_lookup *l = &f->lookup;
    size_t widest = 0;
    if (tables)
        f->rounds[f->round_count++] = (rounded_weights){*tables, f->tables, NULL, rows_of(f), l->d, l->pitch};
    if (projection)
        f->rounds[f->round_count++] = (rounded_weights){*projection, f->projection, NULL, 1, l->projection, l->projection};
    bool good = true;
    for (size_t i = 0; i < f->round_count; ++i) {
        rounded_weights *w = &f->rounds[i];
        w->lost = aligned_memory(w->rows * w->pitch * sizeof *w->lost);
        good = good && w->lost;
        widest = w->width > widest ? w->width : widest;
    }
    f->work = aligned_memory(widest * sizeof *f->work);
    f->scales = aligned_memory(widest * sizeof *f->scales);
    return good && f->work && f->scales;
}

/* Rounds what is rounded for passes forward. */
static void take_roundings(fit *f)
{
    for (size_t i = 0; !f->taken && i < f->round_count; ++i) {
        const rounded_weights *w = &f->rounds[i];
        for (size_t at = 0; at < w->rows * w->pitch; at += w->pitch)
            rounding_take(&w->how, w->values + at, w->width, w->lost + at, f->work, f->scales);
    }
    f->taken = true;
}

/* Gives the weights back what that took: those that learn. */
static void give_back(fit *f)
{
    for (size_t i = 0; f->taken && i < f->round_count; ++i) {
        const rounded_weights *w = &f->rounds[i];
        for (size_t at = 0; at < w->rows * w->pitch; ++at)
            w->values[at] += w->lost[at];
    }
    f->taken = false;
}

float *fit_field(fit *f, const char *name, size_t *count)
{
    give_back(f);
    f->stale = f->refold = true;
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
    *count = rows_of(f) * f->lookup.pitch;
    return f->tables;
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

/* Adds a tile's hidden values to the moments. */
static void observe_hidden(fit *f, size_t tokens)
{
    const fit_teacher *t = &f->teacher;
    for (size_t i = 0; i < t->f; ++i)
        for (size_t token = 0; token < tokens; ++token) {
            const double v = (double)f->hidden[i * t->tile + token];
            f->moments.hidden[i] += v;
            f->moments.squares[i] += v * v;
        }
}

/* y = the dense FFN's output for x[tokens][d], by the last product `last`. */
static void teach(fit *f, const fit_dense *last, const float *x, size_t tokens, float *y, bool observe)
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
        if (observe)
            observe_hidden(f, here);
        const fit_weights output = {.projection = last->prepared, .projection_bias = last->bias};
        last->product(&output, f->hidden, f->out, 1);
        for (size_t token = 0; token < here; ++token)
            for (size_t i = 0; i < t->d; ++i)
                y[(first + token) * t->d + i] = f->out[i * t->tile + token];
    }
}

static fit_parameters parameters_of(fit *f)
{
    return (fit_parameters){f->projection, f->projection_bias, f->bias, f->tables, f->state, f->prepared};
}

/* What kernels read and write of x[tokens][d]. */
static fit_tokens tokens_of(const fit *f, const float *x, size_t tokens)
{
    return (fit_tokens){x, f->dy, f->y, f->dx, f->z, f->code, f->score, f->slope, NULL, tokens};
}

/* target and y of x[tokens][d]. */
static void forward(fit *f, const float *x, size_t tokens)
{
    const fit_parameters p = parameters_of(f);
    const fit_tokens all = tokens_of(f, x, tokens);
    teach(f, &f->rest, x, tokens, f->target, false);
    take_roundings(f);
    if (f->stale)
        f->lookup.prepare(&p, f->prepared, f->scratch);
    f->stale = false;
    f->lookup.forward(&p, &all, 0, tokens, f->scratch);
}

void fit_observe(fit *f, const float *x, size_t tokens)
{
    const size_t d = f->lookup.d;
    teach(f, &f->rest, x, tokens, f->target, true);
    for (size_t token = 0; token < tokens; ++token)
        for (size_t i = 0; i < d; ++i) {
            const float own = x[token * d + i], *other = x + token * d;
            float *to = f->moments.products + i * d;
            for (size_t k = i; k < d; ++k)
                to[k] += own * other[k];
            f->moments.x[i] += (double)own;
            f->outputs[i] += (double)f->target[token * d + i];
        }
    f->moments.tokens += tokens;
}

static int by_number(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

bool fit_keep(fit *f, size_t count, size_t *neurons)
{
    const fit_teacher *t = &f->teacher;
    imitate_rank *ranks = malloc(t->f * sizeof *ranks);
    if (!ranks)
        return false;
    imitate_sort(t, &f->moments, ranks);
    for (size_t n = 0; n < count; ++n)
        neurons[n] = ranks[n].neuron;
    qsort(neurons, count, sizeof *neurons, by_number);
    for (size_t n = 0; n < count; ++n)
        for (size_t i = 0; i < t->d; ++i) {
            float *weight = t->columns + i * t->f + neurons[n];
            f->outputs[i] -= f->moments.hidden[neurons[n]] * (double)*weight;
            *weight = 0.0f;
        }
    free(ranks);
    return true;
}

void fit_set_rest(fit *f, const fit_dense *rest)
{
    f->rest = *rest;
}

void fit_centre(fit *f)
{
    for (size_t i = 0; i < f->lookup.d; ++i)
        f->bias[i] = (float)(f->outputs[i] / (double)f->moments.tokens);
}

double fit_imitate(fit *f, uint64_t seed, size_t steps, double rate)
{
    const fit_lookup *l = &f->lookup;
    float *weights = malloc(l->bits * l->d * sizeof *weights);
    double missed = -1;
    give_back(f);
    if (weights && imitate_targets(&f->teacher, &f->moments, l->bits, seed, weights)) {
        if (l->block > 0)
            missed = imitate_fit(&f->linear, &f->moments, weights, steps, rate, f->projection, f->projection_bias);
        else {
            imitate_exactly(&f->moments, weights, l->d, l->bits, f->projection, f->projection_bias);
            missed = 0;
        }
    }
    f->stale = f->refold = true;
    free(weights);
    return missed;
}

/* Moves parameters against their gradients, which begin at place `at` of the sums. */
static void move(fit *f, const adam_step *step, float *parameters, size_t at, size_t count)
{
    adam_update(step, 1, parameters, f->sums + at, f->first + at, f->second + at, count);
}

void fit_step(fit *f, const float *x, size_t tokens, size_t n, const fit_step_rates *step)
{
    const fit_lookup *l = &f->lookup;
    const fit_parameters p = parameters_of(f);
    const adam_step projection = adam_at(n, (float)step->projection, 0, beta1, beta2, 1e-12f);
    const adam_step bias = adam_at(n, (float)step->bias, 0, beta1, beta2, 1e-12f);
    const fit_rates rates = {.rate = (float)step->tables, .epsilon = epsilon};
    const fit_tokens all = tokens_of(f, x, tokens);
    forward(f, x, tokens);
    for (size_t i = 0; i < tokens * l->d; ++i)
        f->dy[i] = (f->y[i] - f->target[i]) / (float)tokens;
    for (size_t row = 0; row < rows_of(f); ++row)
        f->state[row] *= fade;
    l->rows(&p, &rates, &all, 0, l->h, f->scratch);
    memset(f->sums, 0, l->sums * sizeof *f->sums);
    l->project(&p, &all, 0, tokens, f->sums, f->scratch);
    give_back(f);
    if (f->refold)
        projection_fold(l, f->projection, f->folded);
    f->refold = false;
    move(f, &projection, f->folded, 0, l->projection);
    projection_unfold(l, f->folded, f->projection);
    move(f, &projection, f->projection_bias, l->sums_projection_bias, l->bits);
    move(f, &bias, f->bias, l->sums_bias, l->d);
    f->stale = true;
}

/* Where the scores of a table and a token begin: [tiles][slots][whole]. */
static size_t place_of(const fit_lookup *l, size_t token, size_t slot)
{
    return (token / l->whole * l->slots + slot) * l->whole + token % l->whole;
}

bool fit_collect(fit *f, const float *x, size_t tokens)
{
    const fit_lookup *l = &f->lookup;
    forward(f, x, tokens);
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

bool fit_solve(fit *f, size_t sweeps, double ridge)
{
    const fit_lookup *l = &f->lookup;
    /* changes of the rows of one table: sums of score times residual, then what is added; and sums of squared scores */
    float *change = malloc(l->table_rows * (l->pitch + 1) * sizeof *change);
    if (!change)
        return false;
    float *weight = change + l->table_rows * l->pitch;
    give_back(f);
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
    free(change);
    f->stale = true;
    return true;
}

void fit_hash_rows(fit *f)
{
    const fit_lookup *l = &f->lookup;
    const fit_teacher *t = &f->teacher;
    const fit_parameters p = parameters_of(f);
    give_back(f);
    if (f->stale)
        l->prepare(&p, f->prepared, f->scratch);
    for (size_t first = 0; first < t->f; first += f->most) {
        const size_t here = smaller(f->most, t->f - first);
        const fit_tokens some = tokens_of(f, t->rows + first * l->d, here);
        l->forward(&p, &some, 0, here, f->scratch);
        for (size_t row = 0; row < here; ++row)
            for (size_t table = 0; table < l->h; ++table) {
                float *to = f->tables + (table * l->table_rows + f->code[place_of(l, row, table * l->neighbours)]) * l->pitch;
                for (size_t i = 0; i < l->d; ++i)
                    to[i] += t->columns[i * t->f + first + row];
            }
    }
    f->stale = true;
}

void fit_measure(fit *f, const float *x, size_t tokens)
{
    const fit_lookup *l = &f->lookup;
    forward(f, x, tokens);
    const float *whole = f->target; /* the output to whose variance the error is compared */
    if (f->rest.prepared != f->teacher.output.prepared) {
        teach(f, &f->teacher.output, x, tokens, f->dy, false);
        whole = f->dy;
    }
    for (size_t i = 0; i < tokens * l->d; ++i) {
        const double output = (double)whole[i], rest = (double)f->target[i] - (double)f->y[i];
        f->sum[i % l->d] += output;
        f->squares += output * output;
        f->error += rest * rest;
    }
    for (size_t token = 0; token < tokens; ++token)
        for (size_t slot = 0; slot < l->slots; ++slot)
            ++f->uses[slot / l->neighbours * l->table_rows + f->code[place_of(l, token, slot)]];
    f->measured += tokens;
}

double fit_unexplained(const fit *f, double *variance)
{
    double all = f->squares;
    for (size_t i = 0; i < f->lookup.d; ++i)
        all -= f->sum[i] * f->sum[i] / (double)f->measured;
    *variance = all / (double)f->measured;
    return f->error / all;
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
