/* Products through OpenBLAS, which has one function for matrices and one for vectors. */
#ifndef LOOKUPC_BASELINE_OPENBLAS_H
#define LOOKUPC_BASELINE_OPENBLAS_H

#include "harness/baseline/memory.h"

#include <cblas.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Memory for what is made, or NULL with a line in error. */
static inline void *openblas_room(size_t bytes, char *error, size_t error_size)
{
    void *memory = baseline_memory(bytes, false);
    if (!memory) {
        snprintf(error, error_size, "openblas: out of memory");
    }
    return memory;
}

/* c [m][n] = a [m][k] b + add c; b is [k][n] or, transposed, [n][k]. Rows are a_step, b_step and c_step apart. */
typedef struct openblas_product {
    size_t m, n, k;
    const float *a, *b;
    float *c;
    size_t a_step, b_step, c_step;
    bool transposed;
    float add;
} openblas_product;

/* c [tokens][outputs] = a [tokens][inputs] Wᵀ, W [outputs][inputs]; a and c are put in later. */
static inline openblas_product openblas_dense(size_t tokens, size_t inputs, size_t outputs, const float *weights)
{
    return (openblas_product){
        .m = tokens, .n = outputs, .k = inputs, .b = weights, .a_step = inputs, .b_step = inputs, .c_step = outputs, .transposed = true};
}

static inline void openblas_multiply(const openblas_product *p)
{
    const blasint m = (blasint)p->m, n = (blasint)p->n, k = (blasint)p->k, b_step = (blasint)p->b_step;
    if (m == 1) {
        cblas_sgemv(CblasRowMajor, p->transposed ? CblasNoTrans : CblasTrans, p->transposed ? n : k, p->transposed ? k : n, 1.0f, p->b,
                    b_step, p->a, 1, p->add, p->c, 1);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, p->transposed ? CblasTrans : CblasNoTrans, m, n, k, 1.0f, p->a, (blasint)p->a_step, p->b,
                    b_step, p->add, p->c, (blasint)p->c_step);
    }
}

#endif
