/* The dense FFN through oneDNN in 8 bits, as one would deploy it: x rounded to u8 by one scale a call, found from x itself; weights rounded
   to s8 by one scale an output; the hidden layer leaves the first product with GELU as u8, by a scale that was calibrated before. */
#include "harness/baseline/ffn.h"
#include "harness/baseline/onednn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const float zero_of_x = 128.0f; /* the byte that stands for 0 */
static const float levels = 255.0f;    /* of a byte */

/* oneDNN computes scale * (sum of products + bias), both by output: of the first product known when x is. */
typedef struct i8_ffn {
    onednn_work work;
    onednn_primitive first, second;
    size_t values, hidden, threads;
    uint8_t *x;                                          /* [values], rounded */
    float *scale, *bias, *offset, *scale_now, *bias_now; /* [hidden]: scale * unit of x, bias / unit of x + offset */
} i8_ffn;

/* Weights [outputs][inputs] as integers in units of their output. */
typedef struct rounded_weights {
    int8_t *integers;
    float *unit, *sum; /* [outputs]: the unit, the sum of its integers */
} rounded_weights;

static float *room_for(onednn_work *work, size_t count)
{
    return onednn_room(work, count * sizeof(float));
}

static rounded_weights round_weights(onednn_work *work, const onednn_product *of, const float *weights)
{
    const rounded_weights to = {onednn_room(work, of->inputs * of->outputs), room_for(work, of->outputs), room_for(work, of->outputs)};
    for (size_t output = 0; work->status == dnnl_success && output < of->outputs; ++output) {
        const float *row = weights + output * of->inputs;
        const float largest = baseline_largest(row, of->inputs, 1), unit = largest > 0.0f ? largest / (float)onednn_largest_weight() : 1.0f;
        int sum = 0;
        for (size_t i = 0; i < of->inputs; ++i) {
            const int8_t integer = (int8_t)lrintf(row[i] / unit);
            to.integers[output * of->inputs + i] = integer;
            sum += integer;
        }
        to.unit[output] = unit;
        to.sum[output] = (float)sum;
    }
    return to;
}

static void make_layer(onednn_work *work, const onednn_product *of, int8_t *integers, onednn_primitive *to)
{
    *to = onednn_inner_product(work, of);
    onednn_pack(work, of, integers, to);
    free(integers);
}

/* z = unit_of_x * unit * (Σ (byte - 128) * integer) + b; its GELU becomes a byte of `of`, which says how. */
static void make_first(onednn_work *work, onednn_product *of, const baseline_weights *weights, i8_ffn *ffn)
{
    const rounded_weights rounded = round_weights(work, of, weights->w1);
    ffn->scale = rounded.unit;
    ffn->offset = rounded.sum;
    ffn->bias = room_for(work, ffn->hidden);
    ffn->scale_now = room_for(work, ffn->hidden);
    ffn->bias_now = room_for(work, ffn->hidden);
    for (size_t i = 0; work->status == dnnl_success && i < ffn->hidden; ++i) {
        ffn->bias[i] = weights->b1[i] / ffn->scale[i];
        ffn->offset[i] *= -zero_of_x;
    }
    of->bias = ffn->bias_now;
    make_layer(work, of, rounded.integers, &ffn->first);
    onednn_point(work, &ffn->first, DNNL_ARG_ATTR_OUTPUT_SCALES, ffn->scale_now);
    onednn_point(work, &ffn->first, DNNL_ARG_SRC, ffn->x);
}

/* y = unit_of_hidden * unit * (Σ (byte - zero_of_hidden) * integer) + b */
static void make_second(onednn_work *work, onednn_product *of, const baseline_weights *weights, const onednn_product *first, i8_ffn *ffn)
{
    const rounded_weights rounded = round_weights(work, of, weights->w2);
    for (size_t i = 0; work->status == dnnl_success && i < of->outputs; ++i) {
        rounded.unit[i] *= first->unit;
        rounded.sum[i] = weights->b2[i] / rounded.unit[i] - first->zero * rounded.sum[i];
    }
    of->scale = rounded.unit;
    of->bias = rounded.sum;
    make_layer(work, of, rounded.integers, &ffn->second);
}

static void make(onednn_work *work, const baseline_weights *weights, size_t tokens, i8_ffn *ffn)
{
    const float unit = (weights->high - weights->low) / levels;
    onednn_product first = {"i8", tokens, weights->d, weights->hidden, dnnl_u8, .by_output = true, .gelu = true, .unit = unit},
                   second = {"i8", tokens, weights->hidden, weights->d_out, dnnl_f32, .by_output = true};
    first.zero = roundf(-weights->low / unit);
    ffn->values = tokens * weights->d;
    ffn->hidden = weights->hidden;
    ffn->x = onednn_room(work, ffn->values);
    make_first(work, &first, weights, ffn);
    make_second(work, &second, weights, &first, ffn);
    onednn_join(work, &ffn->first, &ffn->second, DNNL_MEMORY_ALLOCATE);
}

static void *create(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    onednn_work work = onednn_begin(threads);
    i8_ffn *ffn = onednn_room(&work, sizeof(*ffn));
    if (ffn) {
        make(&work, weights, tokens, ffn);
        ffn->work = work;
        ffn->threads = threads;
    }
    return onednn_made(&work, "i8", tokens, error, error_size) ? ffn : NULL;
}

static bool run(void *self, const float *x, float *y)
{
    i8_ffn *ffn = self;
    const float largest = baseline_largest(x, ffn->values, ffn->threads), unit = largest > 0.0f ? largest / 127.0f : 1.0f;
    baseline_bytes(x, ffn->values, unit, ffn->x, ffn->threads);
    baseline_scales(ffn->scale, ffn->bias, ffn->offset, ffn->hidden, unit, ffn->scale_now, ffn->bias_now);
    onednn_point(&ffn->work, &ffn->second, DNNL_ARG_DST, y);
    return onednn_run(&ffn->work, &ffn->first) && onednn_run(&ffn->work, &ffn->second);
}

static void describe(char *text, size_t size)
{
    const char *how = onednn_has(dnnl_cpu_isa_avx512_core_amx) ? "amx" : onednn_largest_weight() == 127 ? "vnni" : "7-bit weights";
    snprintf(text, size, "%s", how);
}

const baseline_library baseline_onednn_i8 = {.name = "onednn",
                                             .type = "i8",
                                             .description = "onednn_i8",
                                             .create = create,
                                             .run = run,
                                             .describe = describe,
                                             .implementation = onednn_implementation,
                                             .largest_weight = onednn_largest_weight};
