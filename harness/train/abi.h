/* What an emitted training library is called with: the same for every model, whose names stand before these. */
#ifndef LOOKUPC_TRAIN_ABI_H
#define LOOKUPC_TRAIN_ABI_H

#include <stddef.h>
#include <stdint.h>

/* c[rows][c_step] = A B, or added to c; A is a[rows][a_step], or a[depth][a_step] if a_across; B is b[depth][b_step], or b[columns][b_step]
   if b_across. */
typedef void train_product(int a_across, int b_across, size_t rows, size_t columns, size_t depth, const float *a, size_t a_step,
                           const float *b, size_t b_step, float *c, size_t c_step, int add);

/* The structure that templates/whole/training/ emits; its comments stand there. */
typedef struct {
    float *parameters, *gradients, *table_state;
    uint32_t *row_uses;
    const float *constants;
    train_product *product;
    const uint32_t *lengths;
    float table_rate, table_epsilon, gradient_scale, dropout;
    uint64_t seed, step, first_sequence;
    size_t part, parts;
    void (*barrier)(void *context);
    void *context;
    uint32_t *rows, *row_counts;
    float *row_gradients;
    float (*criterion)(void *context, size_t token, float *row, float scale, int back);
    void *criterion_context;
} train_call;

/* The sum of cross-entropies of ids[sequences][length] in nats; a target of -1 does not count. All parts call it together. */
typedef double train_function(const train_call *call, const int32_t *ids, const int32_t *targets, size_t sequences, size_t length,
                              void *workspace);

/* Updates the tables from row_gradients, where a step was called with `rows`. All parts call it together. */
typedef void train_apply(const train_call *call);

/* Bytes of the workspace that all parts share. */
typedef size_t train_workspace(size_t sequences, size_t length, size_t parts);

#endif
