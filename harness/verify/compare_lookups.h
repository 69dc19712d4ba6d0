/* What kernels have looked up in the lookup FFN of a block, beside the reference's lookups for the very inputs that they were given. */
#ifndef LOOKUPC_HARNESS_VERIFY_COMPARE_LOOKUPS_H
#define LOOKUPC_HARNESS_VERIFY_COMPARE_LOOKUPS_H

#include "harness/reference/block_lookup.h"

enum { LOOKED_TEXT = 640 };

typedef struct {
    size_t codes, flips;     /* codes, and those that are not among the reference's best */
    size_t flips_explained;  /* flips that rounding the inputs of products makes of the reference itself */
    double scores;           /* the root of the sum of squares of errors of scores, relative to that of the scores */
    double scores_explained; /* what rounding those inputs makes of the reference's, likewise */
    char wrong[LOOKED_TEXT]; /* what rounding does not explain, "" for nothing */
} looked_result;

/* Compares looked[count], all of one layer, with its FFN. The reference rounds inputs of products as kernels do, but one that is half-way
   between two integers may become either: every code and score must be within the bound of the rounding of all of them, and all together
   nearer to the reference's than a share of how far that is from one that rounds none. False when memory is short or a row cannot be read.
 */
bool looked_compare(const reference_block_lookup *lookup, const reference_looked *looked, size_t count, looked_result *result);

#endif
