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
   Where kernels round the inputs of products as well, reference_project does so with these weights. The form must have been taken before.

   *memory holds the new arrays, to be freed when weights are no longer used. For f32, which is left exact, it is NULL and nothing changes.
   False when memory is short. */
bool reference_round_projection(const reference_model *model, reference_type type, reference_weights *weights, double **memory);

/* How kernels multiply by a projection: as it is; BH4 as one dense matrix, all of it but the share of the input; likewise, and inputs are
   rounded to bf16, too. */
typedef enum { REFERENCE_AS_IT_IS, REFERENCE_MULTIPLIED_OUT, REFERENCE_BF16_INPUTS } reference_form;

/* Makes model and weights those of a projection in that form. *memory holds the dense matrix, to be freed when weights are no longer used,
   or is NULL. False when memory is short. */
bool reference_take_form(reference_form form, reference_model *model, reference_weights *weights, double **memory);

#endif
