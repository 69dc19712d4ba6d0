/* What an emitted training library is called with: the same for every model, whose names stand before these. */
#ifndef LOOKUPC_TRAIN_ABI_H
#define LOOKUPC_TRAIN_ABI_H

#include <stddef.h>
#include <stdint.h>

/* The structure that templates/model/training/ emits; its comments stand there. */
typedef struct {
    float *parameters, *gradients, *table_state;
    uint32_t *row_uses;
    const float *constants;
    const uint32_t *lengths;
    float table_rate, table_epsilon, beta1, beta2, correction1, correction2;
    int adam;
    float gradient_scale, dropout;
    uint64_t seed, step, first_sequence;
    size_t part, parts;
    void (*barrier)(void *context);
    void *context;
    uint32_t *rows, *row_counts;
    float *row_gradients;
    float (*criterion)(void *context, size_t token, float *row, float scale, int back);
    void *criterion_context;
    void (*observe)(void *context, const float *features);
    int signs; /* of train_signs; models without attention by tables do not have it */
} train_call;

/* What attention by tables reads: weights that are expected, tables with signs of the step, tables with the model's signs. */
enum train_signs { TRAIN_EXPECTED, TRAIN_FRESH_SIGNS, TRAIN_OWN_SIGNS };

/* The sum of cross-entropies of ids[sequences][length] in nats; a target of -1 does not count. All parts call it together. */
typedef double train_function(const train_call *call, const int32_t *ids, const int32_t *targets, size_t sequences, size_t length,
                              void *workspace);

/* Updates the tables from row_gradients, where a step was called with `rows`. All parts call it together. */
typedef void train_apply(const train_call *call);

/* Makes the calling thread take denormal numbers for zeros (1); returns the state before, to which another call returns. */
typedef int train_flush(int state);

/* Bytes of the workspace that all parts share. */
typedef size_t train_workspace(size_t sequences, size_t length, size_t parts);

#endif
