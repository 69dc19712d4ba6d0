/* What the forward pass of a run with --quantise reads instead of a tensor: its values as `lookupc pack` rounds them. */
#ifndef LOOKUPC_TRAIN_ROUNDING_H
#define LOOKUPC_TRAIN_ROUNDING_H

#include "gen/weights/fold.h"
#include "gen/weights/quantise.h"

#include <stdbool.h>
#include <stddef.h>

/* How `pack` folds and rounds a tensor: elements are transformed in blocks, scaled along a walk, and rounded, `row` of them with one scale.
 */
typedef struct {
    quantise_type type;
    size_t row;
    size_t hadamard; /* of the blocks' outputs: the size of a block; 0: no transform */
    size_t at;       /* first element that is scaled */
    int rank;        /* of the walk; 0: no element is scaled */
    fold_dim dims[FOLD_MAX_DIMS];
    double factor;
} rounding;

/* to[count] <- the values that, folded as the packer does, are those of from[count] rounded; `count` whole rows and blocks. The gradient of
   a loss with respect to `to` passes to `from` as it is: the straight-through estimate. Source: Bengio, Leonard, Courville, "Estimating or
   propagating gradients through stochastic neurons". Where a value does not fit the type, all of `to` become NaN.
   work    [count] overwritten
   scales  [count / row] overwritten, of scaled types */
void rounding_apply(const rounding *r, const float *from, size_t count, float *to, double *work, float *scales);

/* The same in place. lost[count] <- what that takes from the values: added to them, even after a step that has moved them, it leaves the
   weights that learn. */
void rounding_take(const rounding *r, float *values, size_t count, float *lost, double *work, float *scales);

#endif
