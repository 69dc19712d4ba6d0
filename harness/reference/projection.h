/* The reference's projection as a blob holds it: rounded to the type of its elements, in float64, by code of its own. */
#ifndef LOOKUPC_HARNESS_REFERENCE_PROJECTION_H
#define LOOKUPC_HARNESS_REFERENCE_PROJECTION_H

#include "harness/reference/lookup.h"
#include "harness/reference/type.h"

#include <stdbool.h>

/* Replaces the projection and bias of weights by what is left of them when the blob's numbers are rounded to the type.

   The blob's numbers are folded: W' = H_b W for each block of BH4, that of the first step times the norm's gain, of the fourth times decay;
   for the dense projection W times the gain. They are folded, rounded and unfolded again, so that the definitions hold for the result as
   they do for the checkpoint's weights. The norm's offset reaches z through the unrounded weights: the bias makes up for the difference.
   Where kernels round the inputs of products as well, reference_project does so with these weights.

   *memory holds the new arrays, to be freed when weights are no longer used. For f32, which is left exact, it is NULL and nothing changes.
   False when memory is short. */
bool reference_round_projection(const reference_model *model, reference_type type, reference_weights *weights, double **memory);

/* r[h tau][d] <- a BH4 projection of these weights multiplied out: all of it but the share of the input. False when memory is short. */
bool reference_multiply_out(const reference_model *model, const reference_weights *weights, double *r);

#endif
