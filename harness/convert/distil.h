/* Distils a dense model into one with LookupFFNs, end to end: steps of training whose loss is the distance to what the dense model made of
   the same tokens. */
#ifndef LOOKUPC_CONVERT_DISTIL_H
#define LOOKUPC_CONVERT_DISTIL_H

#include "harness/convert/vector_error.h"
#include "harness/train/abi.h"
#include "harness/train/rounding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an encoder makes a vector of a sequence. */
typedef enum { DISTIL_NO_POOL, DISTIL_MEAN, DISTIL_FIRST, DISTIL_LAST } distil_pool;

/* A tensor among the parameters; rate: factor of the step's rate, 0: it stays as it is. */
typedef struct {
    size_t at, rows, columns, pitch;
    double rate;
    bool tables; /* moved by the kernels, row-wise Adagrad */
    bool rounds; /* passes forward read it rounded: tables row by row, others whole, without space between rows */
    rounding rounding;
} distil_tensor;

/* What does not change: an emitted training library, and its sizes in floats. */
typedef struct {
    train_function *step;
    train_workspace *workspace;
    size_t parameters, gradients, table_rows;
    size_t width, pitch; /* of a token's row, and from row to row of features */
    bool logits;         /* the rows are logits: the loss is the divergence of their softmax; else the squared error of features */
    double soft_cap;     /* of the dense model's logits, which the library's come before; 0: none */
    distil_pool pool;
    double pooled;     /* weight of the error of a sequence's pool beside that of its tokens */
    vector_map vector; /* what becomes of the pool; kept by the caller until distil_create has returned */
    double vectors;    /* weight of the error of the vector likewise (vector_error.h); 0: none */
    distil_tensor *tensors;
    size_t tensor_count;
} distil_job;

typedef struct distil distil;

/* NULL: memory is short. constants: what the library calls so, may be NULL; both are kept by the caller. Parameters are zero. */
distil *distil_create(const distil_job *job, const float *constants);
void distil_free(distil *d);
float *distil_parameters(distil *d);

/* Sequences of lengths[i] ids each, one behind the other in `ids`, and the dense model's rows[tokens][width]. */
typedef struct {
    const int32_t *ids;
    const uint32_t *lengths;
    size_t sequences;
    const float *rows;
} distil_batch;

/* Step n = 1, 2, ... Adam moves what is no table, at most `rate`; returns the loss a token; negative: memory is short. */
double distil_step(distil *d, const distil_batch *batch, size_t n, double rate, double table_rate);

#endif
