/* The products of a block through oneDNN: inner products with weights in the layout that oneDNN asks for, in float32, bfloat16 and 8 bits.
 */
#include "harness/baseline/products.h"

#include "harness/base/memory.h"
#include "harness/baseline/onednn.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

typedef struct made_product {
    onednn_work work;
    onednn_primitive primitive;
} made_product;

/* The layouts of weights that were made before: several numbers of tokens often ask for the same. */
typedef struct packed_before {
    const float *weights;
    const char *type;
    dnnl_memory_t memory;
    struct packed_before *next;
} packed_before;

static packed_before *all_packed;

/* Weights [outputs][inputs] as whole multiples of the result. */
static float quantise(const baseline_matrix *matrix, int8_t *to)
{
    const size_t count = matrix->inputs * matrix->outputs;
    const float unit = baseline_largest(matrix->weights, count, 1) / (float)onednn_largest_weight();
    for (size_t i = 0; to && i < count; ++i) {
        to[i] = (int8_t)lrintf(matrix->weights[i] / unit);
    }
    return unit;
}

/* Puts in the weights of `matrix`; whole: those of i8. */
static void pack(onednn_work *work, const onednn_product *of, const baseline_matrix *matrix, const int8_t *whole, onednn_primitive *to)
{
    if (work->status != dnnl_success) {
        return;
    }
    const dnnl_memory_desc_t *wanted = onednn_layout(onednn_argument(to, DNNL_ARG_WEIGHTS));
    for (const packed_before *one = all_packed; one; one = one->next) {
        if (one->weights == matrix->weights && strcmp(one->type, of->type) == 0 &&
            dnnl_memory_desc_equal(onednn_layout(one->memory), wanted)) {
            onednn_put(to, DNNL_ARG_WEIGHTS, one->memory);
            return;
        }
    }
    onednn_pack(work, of, whole ? (const void *)whole : matrix->weights, to);
    packed_before *one = onednn_room(work, sizeof(*one));
    if (one) {
        *one = (packed_before){matrix->weights, of->type, onednn_argument(to, DNNL_ARG_WEIGHTS), all_packed};
        all_packed = one;
    }
}

/* x [tokens][inputs] with the type of the product. */
static dnnl_memory_t round_x(onednn_work *work, const onednn_product *of, const float *x)
{
    const size_t count = of->tokens * of->inputs;
    if (onednn_type_of_x(of->type) != dnnl_u8) {
        const onednn_primitive rounding = onednn_rounding(work, of, x);
        onednn_run(work, &rounding);
        return onednn_argument(&rounding, DNNL_ARG_TO);
    }
    uint8_t *bytes = onednn_room(work, count);
    for (size_t i = 0; bytes && i < count; ++i) {
        bytes[i] = (uint8_t)lrintf(x[i] * 255.0f);
    }
    return onednn_matrix(work, dnnl_u8, of->tokens, of->inputs, bytes);
}

static void *make_product(const baseline_matrix *matrix, const char *type, size_t tokens, const float *x, char *error, size_t error_size)
{
    onednn_work work = onednn_begin(1);
    made_product *self = onednn_room(&work, sizeof(*self));
    float scale = 1.0f;
    onednn_product of = {type, tokens, matrix->inputs, matrix->outputs, dnnl_f32, .bias = NULL};
    int8_t *whole = NULL;
    if (onednn_type_of_x(type) == dnnl_u8) {
        whole = onednn_room(&work, matrix->inputs * matrix->outputs);
        scale = quantise(matrix, whole) / 255.0f;
        of.scale = &scale;
    }
    if (self) {
        self->primitive = onednn_inner_product(&work, &of);
        onednn_put(&self->primitive, DNNL_ARG_SRC, round_x(&work, &of, x));
        pack(&work, &of, matrix, whole, &self->primitive);
        self->work = work;
    }
    free(whole);
    return onednn_made(&work, type, tokens, error, error_size) ? self : NULL;
}

static bool run_product(void *product, float *y)
{
    made_product *self = product;
    onednn_point(&self->work, &self->primitive, DNNL_ARG_DST, y);
    return onednn_run(&self->work, &self->primitive);
}

/* Scores and sums of one head, or for one token of a group of heads; its data are put in for every call. */
typedef struct onednn_attention {
    onednn_work work;
    baseline_attention of;
    onednn_primitive scores, sums;
    float *score;
} onednn_attention;

/* A matrix [rows][columns] whose numbers lie so far apart. */
static dnnl_memory_desc_t strided(onednn_work *work, size_t rows, size_t columns, size_t row_step, size_t column_step)
{
    dnnl_memory_desc_t of;
    onednn_note(work, dnnl_memory_desc_init_by_strides(&of, 2, (dnnl_dims_t){(dnnl_dim_t)rows, (dnnl_dim_t)columns}, dnnl_f32,
                                                       (dnnl_dims_t){(dnnl_dim_t)row_step, (dnnl_dim_t)column_step}));
    return of;
}

/* c = a b */
static onednn_primitive make_matmul(onednn_work *work, dnnl_memory_desc_t a, dnnl_memory_desc_t b, dnnl_memory_desc_t c)
{
    dnnl_matmul_desc_t operation;
    onednn_note(work, dnnl_matmul_desc_init(&operation, &a, &b, NULL, &c));
    return onednn_primitive_of(work, &operation, NULL);
}

static void *make_attention(const baseline_attention *of, char *error, size_t error_size)
{
    onednn_work work = onednn_begin(1);
    onednn_attention *self = onednn_room(&work, sizeof(*self));
    const size_t width = of->width, e = of->kv_heads * width, end = of->position + of->tokens;
    const bool alone = of->tokens == 1;
    const size_t rows = alone ? of->heads / of->kv_heads : of->tokens, step = alone ? width : of->heads * width;
    if (self) {
        self->of = *of;
        self->score = onednn_room(&work, rows * end * sizeof(*self->score));
        self->scores =
            make_matmul(&work, strided(&work, rows, width, step, 1), strided(&work, width, end, 1, e), strided(&work, rows, end, end, 1));
        self->sums =
            make_matmul(&work, strided(&work, rows, end, end, 1), strided(&work, end, width, e, 1), strided(&work, rows, width, step, 1));
        onednn_join(&work, &self->scores, &self->sums, self->score);
        self->work = work;
    }
    return onednn_made(&work, "attention", of->tokens, error, error_size) ? self : NULL;
}

static bool run_attention(void *attention, float *y)
{
    onednn_attention *self = attention;
    onednn_work *work = &self->work;
    const baseline_attention *of = &self->of;
    const size_t end = of->position + of->tokens, e = of->kv_heads * of->width, group = of->heads / of->kv_heads;
    for (size_t layer = 0; layer < of->layers; ++layer) {
        for (size_t head = 0; head < of->heads; head += of->tokens == 1 ? group : 1) {
            const size_t at = layer * end * e + head / group * of->width;
            onednn_point(work, &self->scores, DNNL_ARG_SRC, of->q + head * of->width);
            onednn_point(work, &self->scores, DNNL_ARG_WEIGHTS, of->keys + at);
            onednn_run(work, &self->scores);
            baseline_softmax(of, self->score);
            onednn_point(work, &self->sums, DNNL_ARG_WEIGHTS, of->values + at);
            onednn_point(work, &self->sums, DNNL_ARG_DST, y + head * of->width);
            onednn_run(work, &self->sums);
        }
    }
    return work->status == dnnl_success;
}

const baseline_product_library baseline_products_onednn = {
    .dense = &baseline_onednn, .product = make_product, .multiply = run_product, .attention = make_attention, .attend = run_attention};
