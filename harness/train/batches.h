/* Which tokens a training step sees: windows of a long row of ids, shuffled anew for every pass over them, from seed and step alone. */
#ifndef LOOKUPC_TRAIN_BATCHES_H
#define LOOKUPC_TRAIN_BATCHES_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const int32_t *ids; /* [count] */
    size_t count;
    size_t length; /* tokens of a window */
    uint64_t seed;
} batches;

/* Windows of a pass, at least one if there are length + 1 ids, else none. */
size_t batches_windows(const batches *b);

/* Where window number `index`, counted from the first step on, starts. A pass takes every window once, in an order of its own, and starts
   at an id of its own, so that windows end elsewhere. */
size_t batches_start(const batches *b, uint64_t index);

/* Copies window number `index` to ids[length], and what follows each of its tokens to targets[length]. */
void batches_next(const batches *b, uint64_t index, int32_t *ids, int32_t *targets);

/* The same for masked models. Of all tokens `share` are to be found: their targets are the ids, others have -1. Of those 80 % are `mask` in
   ids, 10 % a random id below `vocab`, 10 % themselves. Source: Devlin and others, "BERT". */
typedef struct {
    int32_t mask;
    uint32_t vocab;
    double share;
} batches_masks;

void batches_masked(const batches *b, const batches_masks *masks, uint64_t index, int32_t *ids, int32_t *targets);

#endif
