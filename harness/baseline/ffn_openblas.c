/* The dense FFN through OpenBLAS. It chooses its kernels when the library loads: set OPENBLAS_CORETYPE before the process starts. */
#include "harness/baseline/ffn.h"

#include "harness/baseline/openblas.h"

#include <stdio.h>

typedef struct openblas_ffn {
    const baseline_weights *weights;
    size_t tokens, threads;
    openblas_product first, second;
} openblas_ffn;

static void *create(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    openblas_set_num_threads((int)threads);
    openblas_ffn *self = openblas_room(sizeof(*self), error, error_size);
    float *hidden = openblas_room(tokens * weights->hidden * sizeof(*hidden), error, error_size);
    if (!self || !hidden) {
        return NULL;
    }
    *self = (openblas_ffn){.weights = weights,
                           .tokens = tokens,
                           .threads = threads,
                           .first = openblas_dense(tokens, weights->d, weights->hidden, weights->w1),
                           .second = openblas_dense(tokens, weights->hidden, weights->d_out, weights->w2)};
    self->first.c = hidden;
    self->second.a = hidden;
    self->second.add = 1.0f; /* to the bias */
    return self;
}

static bool run(void *ffn, const float *x, float *y)
{
    openblas_ffn *self = ffn;
    const baseline_weights *weights = self->weights;
    for (size_t token = 0; token < self->tokens; ++token) {
        memcpy(y + token * weights->d_out, weights->b2, weights->d_out * sizeof(*y));
    }
    self->first.a = x;
    self->second.c = y;
    openblas_multiply(&self->first);
    baseline_bias_gelu(self->first.c, weights->b1, self->tokens, weights->hidden, self->threads);
    openblas_multiply(&self->second);
    return true;
}

static void describe(char *text, size_t size)
{
    snprintf(text, size, "%s", openblas_get_corename());
}

static const char *implementation(const void *made)
{
    (void)made;
    return openblas_get_corename();
}

const baseline_library baseline_openblas = {.name = "openblas",
                                            .type = "f32",
                                            .description = "openblas_corename",
                                            .create = create,
                                            .run = run,
                                            .describe = describe,
                                            .implementation = implementation};
