/* Folded weights of a BH4 projection, which Adam moves instead of those of a checkpoint: a weight of the last stage then belongs to few
   outputs. Folded is H W of each block, H the Hadamard matrix of the block's outputs, times the decay in the fourth stage. */
#ifndef LOOKUPC_CONVERT_PROJECTION_H
#define LOOKUPC_CONVERT_PROJECTION_H

#include "harness/convert/fit.h"

/* Both are [repeats][4][blocks][block out][block in], and may be the same memory; a dense projection is copied. */
void projection_fold(const fit_lookup *l, const float *projection, float *folded);
void projection_unfold(const fit_lookup *l, const float *folded, float *projection);

#endif
