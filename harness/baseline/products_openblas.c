/* The products of a block through OpenBLAS. It chooses its kernels when the library loads: set
   OPENBLAS_CORETYPE before the process starts. */
#include "harness/baseline/products.h"

#include "harness/baseline/openblas.h"

static void *make_product(const baseline_matrix *matrix, const char *type, size_t tokens, const float *x, char *error, size_t error_size)
{
    (void)type;
    openblas_set_num_threads(1);
    openblas_product *self = openblas_room(sizeof(*self), error, error_size);
    if (self) {
        *self = openblas_dense(tokens, matrix->inputs, matrix->outputs, matrix->weights);
        self->a = x;
    }
    return self;
}

static bool run_product(void *product, float *y)
{
    openblas_product *self = product;
    self->c = y;
    openblas_multiply(self);
    return true;
}

typedef struct openblas_attention {
    baseline_attention of;
    openblas_product scores, sums; /* of a head; of one token the heads of a group are the rows of one product */
} openblas_attention;

static void *make_attention(const baseline_attention *of, char *error, size_t error_size)
{
    openblas_set_num_threads(1);
    const size_t end = of->position + of->tokens, width = of->width, e = of->kv_heads * width;
    const bool alone = of->tokens == 1;
    const size_t rows = alone ? of->heads / of->kv_heads : of->tokens, step = alone ? width : of->heads * width;
    openblas_attention *self = openblas_room(sizeof(*self), error, error_size);
    float *score = openblas_room(rows * end * sizeof(*score), error, error_size);
    if (!self || !score) {
        return NULL;
    }
    self->of = *of;
    self->scores =
        (openblas_product){.m = rows, .n = end, .k = width, .c = score, .a_step = step, .b_step = e, .c_step = end, .transposed = true};
    self->sums = (openblas_product){.m = rows, .n = width, .k = end, .a = score, .a_step = end, .b_step = e, .c_step = step};
    return self;
}

static bool run_attention(void *attention, float *y)
{
    openblas_attention *self = attention;
    const baseline_attention *of = &self->of;
    const size_t end = of->position + of->tokens, e = of->kv_heads * of->width, group = of->heads / of->kv_heads;
    for (size_t layer = 0; layer < of->layers; ++layer) {
        for (size_t head = 0; head < of->heads; head += of->tokens == 1 ? group : 1) {
            const size_t at = layer * end * e + head / group * of->width;
            self->scores.a = of->q + head * of->width;
            self->scores.b = of->keys + at;
            openblas_multiply(&self->scores);
            baseline_softmax(of, self->scores.c);
            self->sums.b = of->values + at;
            self->sums.c = y + head * of->width;
            openblas_multiply(&self->sums);
        }
    }
    return true;
}

const baseline_product_library baseline_products_openblas = {
    .dense = &baseline_openblas, .product = make_product, .multiply = run_product, .attention = make_attention, .attend = run_attention};
