/* The dense FFN through OpenBLAS. It chooses its kernels when the library loads: set OPENBLAS_CORETYPE before the process starts. */
#include "harness/baseline/ffn.h"

#include "harness/base/memory.h"

#include <cblas.h>
#include <stdio.h>

typedef struct openblas_ffn {
    const baseline_weights *weights;
    size_t tokens, threads;
    float *hidden; /* [tokens][hidden] */
} openblas_ffn;

static void openblas_destroy(void *ffn)
{
    openblas_ffn *self = ffn;
    free(self->hidden);
    free(self);
}

static void *openblas_create(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    openblas_set_num_threads((int)threads);
    openblas_ffn *self = malloc(sizeof(*self));
    float *hidden = aligned_memory(tokens * weights->hidden * sizeof *hidden);
    if (!self || !hidden) {
        free(self);
        free(hidden);
        snprintf(error, error_size, "openblas: out of memory");
        return NULL;
    }
    *self = (openblas_ffn){.weights = weights, .tokens = tokens, .threads = threads, .hidden = hidden};
    return self;
}

/* y [m][n] = x [m][k] Wᵀ + accumulate * y, W [n][k] */
static void product(size_t m, size_t n, size_t k, const float *x, const float *weight, float accumulate, float *y)
{
    const blasint rows = (blasint)m, columns = (blasint)n, depth = (blasint)k;
    if (m == 1) {
        cblas_sgemv(CblasRowMajor, CblasNoTrans, columns, depth, 1.0f, weight, depth, x, 1, accumulate, y, 1);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, columns, depth, 1.0f, x, depth, weight, depth, accumulate, y, columns);
    }
}

static bool openblas_run(void *ffn, const float *x, float *y)
{
    const openblas_ffn *self = ffn;
    const baseline_weights *weights = self->weights;
    for (size_t token = 0; token < self->tokens; ++token) {
        memcpy(y + token * weights->d_out, weights->b2, weights->d_out * sizeof(*y));
    }
    product(self->tokens, weights->hidden, weights->d, x, weights->w1, 0.0f, self->hidden);
    baseline_bias_gelu(self->hidden, weights->b1, self->tokens, weights->hidden, self->threads);
    product(self->tokens, weights->d_out, weights->hidden, self->hidden, weights->w2, 1.0f, y);
    return true;
}

static void openblas_describe(char *text, size_t size)
{
    snprintf(text, size, "%s", openblas_get_corename());
}

const baseline_library baseline_openblas = {
    .name = "openblas",
    .type = "f32",
    .description = "openblas_corename",
    .create = openblas_create,
    .run = openblas_run,
    .destroy = openblas_destroy,
    .describe = openblas_describe,
};
