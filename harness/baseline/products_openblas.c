/* The products of a block through OpenBLAS. It chooses its kernels when the library loads: set OPENBLAS_CORETYPE before the process starts.
 */
#include "harness/baseline/products.h"

#include "harness/base/memory.h"
#include "harness/baseline/ffn.h"

#include <cblas.h>
#include <stdio.h>

static const char *const types[] = {"f32", NULL};

typedef struct openblas_product {
    baseline_matrix matrix;
    size_t tokens;
    const float *x;
} openblas_product;

static void *make_product(const baseline_matrix *matrix, const char *type, size_t tokens, const float *x, char *error, size_t error_size)
{
    (void)type;
    openblas_set_num_threads(1);
    openblas_product *self = malloc(sizeof(*self));
    if (!self) {
        snprintf(error, error_size, "openblas: out of memory");
        return NULL;
    }
    *self = (openblas_product){.matrix = *matrix, .tokens = tokens, .x = x};
    return self;
}

/* c [m][n] = a [m][k] b, rows lda and ldc apart; b is [k][n] or, transposed, [n][k], rows ldb apart */
static void multiply(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb, bool transposed, float *c,
                     size_t ldc)
{
    if (m == 1) {
        cblas_sgemv(CblasRowMajor, transposed ? CblasNoTrans : CblasTrans, (blasint)(transposed ? n : k), (blasint)(transposed ? k : n),
                    1.0f, b, (blasint)ldb, a, 1, 0.0f, c, 1);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, 1.0f, a,
                    (blasint)lda, b, (blasint)ldb, 0.0f, c, (blasint)ldc);
    }
}

static bool run_product(void *product, float *y)
{
    const openblas_product *self = product;
    const baseline_matrix *m = &self->matrix;
    multiply(self->tokens, m->outputs, m->inputs, self->x, m->inputs, m->weights, m->inputs, true, y, m->outputs);
    return true;
}

typedef struct openblas_attention {
    baseline_attention of;
    float *score; /* [tokens][position + tokens] of a head; of one token those of a group */
} openblas_attention;

static void *make_attention(const baseline_attention *of, char *error, size_t error_size)
{
    openblas_set_num_threads(1);
    openblas_attention *self = malloc(sizeof(*self));
    const size_t group = of->heads / of->kv_heads, rows = of->tokens == 1 ? group : of->tokens;
    float *score = aligned_memory(rows * (of->position + of->tokens) * sizeof(*score));
    if (!self || !score) {
        free(self);
        free(score);
        snprintf(error, error_size, "openblas: out of memory");
        return NULL;
    }
    *self = (openblas_attention){.of = *of, .score = score};
    return self;
}

static bool run_attention(void *attention, float *y)
{
    const openblas_attention *self = attention;
    const baseline_attention *of = &self->of;
    const size_t end = of->position + of->tokens, e = of->kv_heads * of->width, d = of->heads * of->width;
    const size_t group = of->heads / of->kv_heads;
    const bool alone = of->tokens == 1; /* the heads of a group are then the rows of one product */
    const size_t rows = alone ? group : of->tokens, step = alone ? of->width : d;
    for (size_t layer = 0; layer < of->layers; ++layer) {
        for (size_t head = 0; head < of->heads; head += alone ? group : 1) {
            const float *keys = of->keys + layer * end * e + head / group * of->width;
            const float *values = of->values + layer * end * e + head / group * of->width;
            multiply(rows, end, of->width, of->q + head * of->width, step, keys, e, true, self->score, end);
            baseline_softmax(of, self->score);
            multiply(rows, of->width, end, self->score, end, values, e, false, y + head * of->width, step);
        }
    }
    return true;
}

static void describe(char *text, size_t size)
{
    baseline_openblas.describe(text, size);
}

const baseline_product_library baseline_products_openblas = {
    .name = "openblas",
    .description = "openblas_corename",
    .types = types,
    .product = make_product,
    .multiply = run_product,
    .attention = make_attention,
    .attend = run_attention,
    .describe = describe,
};
