/* The lookup FFN of a transformer's block in float64, and codes that rounding may decide either way.

   A table gives the rows of its best vertices. Where the next best one is as good as the last of those within rounding, as when a bit's z
   is nearly 0, kernels may take the one or the other, and what follows differs: such a tie is noted, and can be turned. Where inputs of
   products are rounded there are too many: then the rows are those that a kernel has taken, by its scores. */
#ifndef LOOKUPC_HARNESS_REFERENCE_LOOKUP_H
#define LOOKUPC_HARNESS_REFERENCE_LOOKUP_H

#include "harness/reference/lookup.h"
#include "harness/reference/projection.h"
#include "harness/reference/type.h"

#include <stdint.h>

/* The FFN of one layer: its model, and its weights in a file. */
typedef struct reference_block_lookup reference_block_lookup;

/* How weights are read: to what they are rounded, and as the projection's type has it also the inputs of its products; in which form the
   projection is; whether a checkpoint's BH4 blocks are stored [in][out]. */
typedef struct {
    reference_type tables, projection;
    reference_form form;
    bool blocks_in_out;
} reference_lookup_weights;

/* Opens the FFN whose tensors' names start with `prefix`, a string that must outlive it, rounded. NULL with one line that starts with the
   path. */
reference_block_lookup *reference_block_lookup_open(const reference_model *model, reference_lookup_weights how, const char *path,
                                                    const char *prefix, char *error, size_t error_size);

/* NULL is allowed. */
void reference_block_lookup_close(reference_block_lookup *lookup);

/* Width of its output. */
size_t reference_block_lookup_out(const reference_block_lookup *lookup);

/* Its model, and its rounded weights. */
const reference_model *reference_block_lookup_model(const reference_block_lookup *lookup);
const reference_weights *reference_block_lookup_weights(const reference_block_lookup *lookup);

/* What a kernel was given for a token and looked up: the lookup FFNs of all blocks are numbered from 0. */
typedef struct {
    size_t layer;
    const float *x;       /* [d] */
    const uint16_t *code; /* [h][neighbours] */
    const float *score;   /* likewise, with the factors of their rows */
    reference_form form;  /* of the projection by which it did */
} reference_looked;

/* Code and score of a slot as the reference has them. A code outside its table becomes one inside. */
size_t reference_looked_code(const reference_model *model, const reference_looked *looked, size_t slot);
double reference_looked_score(const reference_model *model, const reference_weights *weights, const reference_looked *looked, size_t slot);

/* The first of looked[count], sorted by layer, that belongs to the layer, and how many do. */
const reference_looked *reference_looked_of(const reference_looked *looked, size_t count, size_t layer, size_t *own);

typedef struct {
    size_t layer, token, table;
} reference_tie;

typedef struct {
    double margin;               /* a tie costs at most so much of the root mean square of the token's z */
    const reference_tie *turned; /* [turned_count] in which the next best vertex is taken instead of the last of the best */
    size_t turned_count;
    reference_tie *found; /* [found_count] from malloc: all ties, in the order of their tokens and layers' turns */
    size_t found_count, found_room;
    const reference_looked *looked; /* [looked_count] sorted by layer; NULL: codes and scores are the reference's own */
    size_t looked_count;
    size_t looked_layer;   /* the next lookup FFN's number */
    size_t looked_first;   /* the first token is that layer's token of that number */
    size_t looked_from;    /* looked_off is of each layer's tokens from this one on */
    size_t looked_missing; /* tokens of which nothing is known */
    double looked_off;     /* the largest relative error of an x that a kernel was given */
    double *looked_inputs; /* [looked_inputs_count] from malloc: the reference's own, one after the other */
    size_t looked_inputs_count;
} reference_ties;

/* Adds a tie to those that were found; false when memory is short. */
bool reference_ties_note(reference_ties *ties, reference_tie tie);

/* Whether the tie goes the other way. */
bool reference_ties_turned(const reference_ties *ties, reference_tie tie);

/* y[tokens][d_out] = LookupFFN(x[tokens][d]), the FFN of layer number `layer`. Counts looked_layer. False when memory is short or a row
   cannot be read. */
bool reference_block_lookup_run(const reference_block_lookup *lookup, size_t layer, reference_ties *ties, const double *x, size_t tokens,
                                double *y);

#endif
