/* The lookup FFN of a transformer's block in float64, and codes that rounding may decide either way.

   A table gives the rows of its best vertices. Where the next best one is as good as the last of those within rounding, as when a bit's z
   is nearly 0, kernels may take the one or the other, and what follows differs: such a tie is noted, and can be turned. */
#ifndef LOOKUPC_HARNESS_REFERENCE_LOOKUP_H
#define LOOKUPC_HARNESS_REFERENCE_LOOKUP_H

#include "harness/reference/lookup.h"
#include "harness/reference/type.h"

/* The FFN of one layer: its model, and its weights in a file. */
typedef struct reference_block_lookup reference_block_lookup;

/* What is rounded. */
typedef struct {
    reference_type tables, projection;
    bool inputs; /* those of the projection's products, too, as its type has it: half-way between two integers they may become either */
} reference_lookup_types;

/* Opens the FFN whose tensors' names start with `prefix`, a string that must outlive it, rounded. NULL with one line that starts with the
   path. */
reference_block_lookup *reference_block_lookup_open(const reference_model *model, reference_lookup_types types, const char *path,
                                                    const char *prefix, char *error, size_t error_size);

/* NULL is allowed. */
void reference_block_lookup_close(reference_block_lookup *lookup);

/* Width of its output. */
size_t reference_block_lookup_out(const reference_block_lookup *lookup);

typedef struct {
    size_t layer, token, table;
} reference_tie;

typedef struct {
    double margin;               /* a tie costs at most so much of the root mean square of the token's z */
    const reference_tie *turned; /* [turned_count] in which the next best vertex is taken instead of the last of the best */
    size_t turned_count;
    reference_tie *found; /* [found_count] from malloc: all ties, in the order of their tokens and layers' turns */
    size_t found_count, found_room;
} reference_ties;

/* y[tokens][d_out] = LookupFFN(x[tokens][d]), the FFN of layer number `layer`. False when memory is short or a row cannot be read. */
bool reference_block_lookup_run(const reference_block_lookup *lookup, size_t layer, reference_ties *ties, const double *x, size_t tokens,
                                double *y);

#endif
