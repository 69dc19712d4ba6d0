/* Scales and integers of a projection in i8 or i7 for given inputs; see calibrate.h. */
#include "gen/weights/calibrate.h"

#include "gen/weights/cholesky.h"
#include "gen/weights/matmul.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY = 4 }; /* so many-th row is held back */

/* Of the largest scale: smaller ones clip the largest weights. */
static const double shares[] = {1.0, 0.97, 0.94, 0.91};

/* What a stage is given and gives, [rows][width], by one of three projections; rows that are held back come last. */
typedef struct {
    double *now, *next;
    size_t first; /* row that it begins with */
} flow;

enum { EXACT, NEAREST, CALIBRATED, FLOWS }; /* weights as they are, rounded to the nearest, calibrated */

typedef struct {
    calibration *c;
    double levels;           /* the largest integer, of weights and inputs */
    size_t fit, rows, width; /* rows that are not held back; all; `now` of a stage */
    flow flows[FLOWS];
    double *inputs;          /* [rows][k] of a block, rounded as kernels do */
    double *moments, *both;  /* [k][k] of these inputs; of exact ones and these */
    double *row, *errors;    /* [3][k], [k] */
    double *units;           /* [outputs][k] a block's weights, integers times their scales */
    double *nearest_weights; /* as c->weights and c->scales, but rounded to the nearest */
    float *nearest_scales;
    quantise_tally nearest;
    double squares[FLOWS]; /* over z of the rows held back: of z, and of what the others are off by */
    bool *flips;           /* [2][rows held back][tables]: NEAREST, CALIBRATED */
} state;

/* inputs[rows][k] <- a block of `from`, whose rows are `width` apart, each rounded to so many levels up to its largest. */
static void round_inputs(const double *from, size_t width, size_t rows, size_t k, double levels, double *inputs)
{
    for (size_t row = 0; row < rows; ++row, from += width, inputs += k) {
        double largest = 0.0;
        for (size_t i = 0; i < k; ++i)
            largest = fmax(largest, fabs(from[i]));
        const double unit = largest > 0.0 ? largest / levels : 1.0;
        for (size_t i = 0; i < k; ++i)
            inputs[i] = rint(from[i] / unit) * unit;
    }
}

/* row[k] <- the solution X of X V V^T = row. */
static void solve(const double *v, size_t k, double *row)
{
    for (size_t i = k; i-- > 0;) {
        for (size_t j = i + 1; j < k; ++j)
            row[i] -= row[j] * v[i * k + j];
        row[i] /= v[i * k + i];
    }
    for (size_t j = 0; j < k; ++j) {
        for (size_t i = 0; i < j; ++i)
            row[j] -= row[i] * v[i * k + j];
        row[j] /= v[j * k + j];
    }
}

/* to[k] <- integers up to `levels` for the weights in units of `scale`, each beside the errors of those before it. Returns the sum of
   squares of what the output is off, over all inputs that V comes from. */
static double round_row(const double *v, size_t k, const double *weights, float scale, double levels, double *to, double *errors)
{
    double sum = 0.0;
    for (size_t i = 0; i < k; ++i) {
        double shift = 0.0;
        for (size_t l = 0; l < i; ++l)
            shift += errors[l] * v[l * k + i];
        shift /= v[i * k + i];
        to[i] = fmax(-levels, fmin(levels, rint((weights[i] + shift) / (double)scale)));
        errors[i] = weights[i] - to[i] * (double)scale;
        sum += (errors[i] + shift) * (errors[i] + shift) * v[i * k + i] * v[i * k + i];
    }
    return sum;
}

/* weights[outputs][stride] of a block of k inputs, which begin at column `at` <- the integers for them, and their scales. */
static void calibrate_block(state *s, size_t at, size_t k, double *weights, size_t outputs, size_t stride, float *scales)
{
    const matmul_matrix seen = {s->inputs, k, 1}, seen_by_column = {s->inputs, 1, k},
                        exact_by_column = {s->flows[EXACT].now + at, 1, s->width};
    memset(s->moments, 0, k * k * sizeof *s->moments);
    memset(s->both, 0, k * k * sizeof *s->both);
    matmul_add(1.0, (matmul_sizes){k, k, s->fit}, seen_by_column, seen, s->moments, k);
    matmul_add(1.0, (matmul_sizes){k, k, s->fit}, exact_by_column, seen, s->both, k);
    /* Few rows say little of how inputs belong together: the fewer, the more each weight stays what it was. */
    double mean = 0.0;
    for (size_t i = 0; i < k; ++i)
        mean += s->moments[i * k + i] / (double)k;
    const double ridge = mean > 0.0 ? mean * (0.01 + 4.0 * (double)k / (double)s->fit) : 1.0;
    for (size_t i = 0; i < k; ++i) {
        s->moments[i * k + i] += ridge;
        s->both[i * k + i] += ridge;
    }
    cholesky_upper(s->moments, k, k);
    double *const best = s->row + k, *const tried = best + k;
    for (size_t o = 0; o < outputs; ++o, weights += stride) {
        memset(s->row, 0, k * sizeof *s->row);
        matmul_add(1.0, (matmul_sizes){1, k, k}, (matmul_matrix){weights, stride, 1}, (matmul_matrix){s->both, k, 1}, s->row, k);
        solve(s->moments, k, s->row);
        double largest = 0.0, least = INFINITY;
        for (size_t i = 0; i < k; ++i)
            largest = fmax(largest, fabs(s->row[i]));
        memset(best, 0, k * sizeof *best);
        scales[o] = 0.0f;
        for (size_t n = 0; n < sizeof shares / sizeof *shares; ++n) {
            const float scale = (float)(largest / s->levels * shares[n]);
            if (!(scale > 0.0f) || !isfinite(scale))
                continue;
            const double off = round_row(s->moments, k, s->row, scale, s->levels, tried, s->errors);
            if (off < least) {
                least = off, scales[o] = scale;
                memcpy(best, tried, k * sizeof *best);
            }
        }
        for (size_t i = 0; i < stride; ++i) {
            const double integer = i < k ? best[i] : 0.0, change = integer * (double)scales[o] - weights[i];
            s->c->error += i < k ? change * change : 0.0;
            s->c->power += i < k ? weights[i] * weights[i] : 0.0;
            weights[i] = integer; /* zero without an input */
        }
    }
}

/* Of a stage: its inputs, the distance of their rows of weights, its outputs, and where these lie in rows of next_width. */
typedef struct {
    size_t k, stride, outputs, to, next_width;
} stage_block;

/* Adds to the outputs of a block inputs times weights, in units of scales if there are any. */
static void multiply(state *s, flow *f, const stage_block *b, matmul_matrix inputs, const double *weights, const float *scales)
{
    for (size_t o = 0; o < b->outputs; ++o)
        for (size_t i = 0; i < b->k; ++i)
            s->units[o * b->k + i] = weights[o * b->stride + i] * (scales ? (double)scales[o] : 1.0);
    inputs.data += f->first * inputs.row;
    matmul_add(1.0, (matmul_sizes){s->rows - f->first, b->outputs, b->k}, inputs, (matmul_matrix){s->units, 1, b->k},
               f->next + f->first * b->next_width + b->to, b->next_width);
}

/* The part of the Hadamard transform that mixes blocks; the weights have the part inside of them. */
static void butterflies(double *row, size_t width, size_t block)
{
    for (size_t distance = width / 2; distance >= block; distance /= 2)
        for (size_t i = 0; i < width; ++i)
            if ((i & distance) == 0) {
                const double a = row[i], b = row[i + distance];
                row[i] = a + b;
                row[i + distance] = a - b;
            }
}

/* Rounds the weights of a stage of `inputs` inputs, which begin at `weights` and have their scales from `scale` on, and computes the stage
   three ways: blocks of `stride` inputs and `outputs` outputs. */
static void one_stage(state *s, size_t inputs, size_t blocks, size_t outputs, size_t stride, size_t first_weight, size_t first_scale)
{
    calibration *const c = s->c;
    const size_t next_width = blocks * outputs;
    for (int n = 0; n < FLOWS; ++n)
        memset(s->flows[n].next, 0, s->rows * next_width * sizeof(double));
    for (size_t block = 0; block < blocks; ++block) {
        const size_t at = block * stride, k = inputs < at ? 0 : inputs - at < stride ? inputs - at : stride, to = block * outputs;
        double *const weights = c->weights + first_weight + to * stride, *const nearest = s->nearest_weights + first_weight + to * stride;
        float *const scales = c->scales + first_scale + to, *const nearest_scales = s->nearest_scales + first_scale + to;
        memcpy(nearest, weights, outputs * stride * sizeof *weights);
        quantise_round(c->type, nearest, outputs, stride, nearest_scales, &s->nearest);
        if (k == 0) { /* never read */
            memcpy(weights, nearest, outputs * stride * sizeof *weights);
            memcpy(scales, nearest_scales, outputs * sizeof *scales);
            continue;
        }
        const stage_block own = {k, stride, outputs, to, next_width};
        const matmul_matrix exact = {s->flows[EXACT].now + at, s->width, 1}, rounded = {s->inputs, k, 1};
        multiply(s, &s->flows[EXACT], &own, exact, weights, NULL);
        round_inputs(s->flows[NEAREST].now + at, s->width, s->rows, k, s->levels, s->inputs);
        multiply(s, &s->flows[NEAREST], &own, rounded, nearest, nearest_scales);
        round_inputs(s->flows[CALIBRATED].now + at, s->width, s->rows, k, s->levels, s->inputs);
        calibrate_block(s, at, k, weights, outputs, stride, scales);
        multiply(s, &s->flows[CALIBRATED], &own, rounded, weights, scales);
    }
    for (int n = 0; n < FLOWS; ++n) {
        flow *const f = &s->flows[n];
        for (size_t row = f->first; blocks > 1 && row < s->rows; ++row)
            butterflies(f->next + row * next_width, next_width, stride);
        double *const swapped = f->now;
        f->now = f->next;
        f->next = swapped;
    }
    s->width = next_width;
}

/* now[rows][width] <- x and zeros, of all flows; every fourth row last. */
static void begin(state *s, size_t width)
{
    const calibration *const c = s->c;
    s->width = width;
    for (size_t n = 0; n < FLOWS; ++n) {
        memset(s->flows[n].now, 0, s->rows * width * sizeof(double));
        size_t fit = 0, held = s->fit;
        for (size_t row = 0; row < s->rows; ++row) {
            double *const to = s->flows[n].now + (row % EVERY == EVERY - 1 ? held++ : fit++) * width;
            for (size_t i = 0; i < c->shape.d; ++i)
                to[i] = (double)c->x[row * c->shape.d + i];
        }
    }
}

/* Notes what rounded weights make of z, of outputs `first` on, which the flows hold now, and which codes have another bit. */
static void note_z(state *s, size_t first)
{
    const calibration *const c = s->c;
    const size_t tables = c->shape.bits / c->tau;
    for (size_t row = s->fit; row < s->rows; ++row) {
        const float *const x = c->x + ((row - s->fit) * EVERY + EVERY - 1) * c->shape.d;
        for (size_t i = 0; i < s->width && first + i < c->shape.bits; ++i) {
            const double residual = c->residual != NULL && i < c->shape.d ? c->residual[i] * (double)x[i] : 0.0;
            const double rest = residual + (double)c->bias[first + i];
            const double exact = s->flows[EXACT].now[row * s->width + i];
            s->squares[EXACT] += exact * exact;
            for (int n = NEAREST; n <= CALIBRATED; ++n) {
                const double z = s->flows[n].now[row * s->width + i];
                s->squares[n] += (z - exact) * (z - exact);
                if ((z + rest > 0.0) != (exact + rest > 0.0))
                    s->flips[((size_t)(n - NEAREST) * c->held + row - s->fit) * tables + (first + i) / c->tau] = true;
            }
        }
    }
}

static void run(state *s)
{
    calibration *const c = s->c;
    const fold_projection *const shape = &c->shape;
    if (shape->block == 0) {
        begin(s, shape->d);
        one_stage(s, shape->d, 1, shape->bits, shape->d, 0, 0);
        note_z(s, 0);
    }
    const size_t N = shape->padded, b = shape->block;
    for (size_t repeat = 0; b != 0 && repeat < shape->repeats; ++repeat) {
        begin(s, N);
        for (size_t stage = 0; stage < 4; ++stage)
            one_stage(s, stage == 0 ? shape->d : N, N / b, b, b, (4 * repeat + stage) * N * b, (4 * repeat + stage) * N);
        note_z(s, repeat * N);
    }
    const size_t codes = c->codes = c->held * (shape->bits / c->tau);
    c->nearest_flips = c->flips = 0;
    for (size_t i = 0; i < codes; ++i) {
        c->nearest_flips += s->flips[i];
        c->flips += s->flips[codes + i];
    }
    const double power = s->squares[EXACT] > 0.0 ? s->squares[EXACT] : 1.0;
    c->nearest_z_error = sqrt(s->squares[NEAREST] / power);
    c->z_error = sqrt(s->squares[CALIBRATED] / power);
}

bool calibrate(calibration *c)
{
    const fold_projection *const shape = &c->shape;
    const bool dense = shape->block == 0;
    const size_t k = dense ? shape->d : shape->block, rows = c->rows, outputs = dense ? shape->bits : shape->block;
    const size_t width = dense ? (shape->d > shape->bits ? shape->d : shape->bits) : shape->padded;
    const size_t scales = dense ? shape->bits : 4 * shape->repeats * shape->padded, weights = scales * k;
    c->held = rows / EVERY;
    c->error = c->power = 0.0;
    state s = {.c = c, .levels = quantise_largest(c->type), .fit = rows - rows / EVERY, .rows = rows};
    double *const memory = malloc((2 * FLOWS * rows * width + rows * k + 2 * k * k + 4 * k + outputs * k + weights) * sizeof *memory);
    s.nearest_scales = malloc(scales * sizeof *s.nearest_scales);
    s.flips = calloc(2 * c->held * (shape->bits / c->tau), sizeof *s.flips);
    const bool good = memory != NULL && s.nearest_scales != NULL && s.flips != NULL;
    if (good) {
        double *at = memory;
        for (size_t n = 0; n < FLOWS; ++n, at += 2 * rows * width)
            s.flows[n] = (flow){at, at + rows * width, n == NEAREST ? s.fit : 0};
        s.inputs = at;
        s.moments = s.inputs + rows * k;
        s.both = s.moments + k * k;
        s.row = s.both + k * k;
        s.errors = s.row + 3 * k;
        s.units = s.errors + k;
        s.nearest_weights = s.units + outputs * k;
        run(&s);
        if (!(c->z_error < c->nearest_z_error)) {
            memcpy(c->weights, s.nearest_weights, weights * sizeof *c->weights);
            memcpy(c->scales, s.nearest_scales, scales * sizeof *c->scales);
            c->error = s.nearest.error;
            c->power = s.nearest.power;
        }
    }
    free(memory);
    free(s.nearest_scales);
    free(s.flips);
    return good;
}
