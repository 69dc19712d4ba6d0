/* Calibration of a projection in i8 or i7: scales and integers of its weights for the inputs that it is given.

   Rounding each weight to the nearest is best for inputs that have nothing to do with each other. Those of a model have: what one weight
   loses, the weights of inputs like it can make up for. So the integers of an output in a block are chosen one after the other, each beside
   the errors of those before it, for the least error on the inputs (Babai's nearest plane, or GPTQ), from weights that also make up for
   what the stages before got wrong, and its scale is the one of a few with which that error is the least. */
#ifndef LOOKUPC_WEIGHTS_CALIBRATE_H
#define LOOKUPC_WEIGHTS_CALIBRATE_H

#include "gen/weights/fold.h"
#include "gen/weights/quantise.h"

#include <stdbool.h>
#include <stddef.h>

enum { CALIBRATE_LEAST_ROWS = 64 };

typedef struct {
    fold_projection shape; /* its decay: folded into the weights already */
    size_t tau;
    quantise_type type;     /* of integers */
    const float *x;         /* [rows][d], normalised where the model has a norm */
    size_t rows;            /* at least CALIBRATE_LEAST_ROWS */
    const double *residual; /* [d] what of x is added to z of each repeat; NULL: nothing */
    const float *bias;      /* [bits] of z */
    double *weights;        /* folded, [repeats][4][padded][block] or [bits][d]; in the end the integers */
    float *scales;          /* [repeats][4][padded] or [bits]; written */
    /* What came of it, on every fourth row, which the calibration did not see: */
    size_t held, codes;              /* such rows, and their codes */
    size_t nearest_flips, flips;     /* codes that are others with weights rounded to the nearest, and calibrated */
    double nearest_z_error, z_error; /* what z is off by, relative to the products of exact weights, likewise */
    double error, power;             /* sums of squares over all weights: of what changed, and of the weights */
} calibration;

/* Calibrates. Where z is no nearer than before, scales and integers are those of rounding to the nearest. False without memory. */
bool calibrate(calibration *c);

#endif
