/* Rounds a matrix to 4 bits in groups for the inputs that it is multiplied by.

   Rounding each weight to the nearest is best for inputs that have nothing to do with each other. Those of a model have: what one weight
   loses, the weights of inputs like it can make up for. So the integers of a row are chosen one after the other, each beside the errors of
   those before it, for the least error on the inputs, as in GPTQ (arXiv 2210.17323), and each group has the scale, of those that rounding
   to the nearest tries, with which that error is the least. */
#ifndef LOOKUPC_WEIGHTS_ROUND_FOR_INPUTS_H
#define LOOKUPC_WEIGHTS_ROUND_FOR_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t rows, columns;  /* columns: even */
    bool minimum;          /* u4, not i4 */
    double *weights;       /* [rows][columns] in the end what the integers stand for */
    double *moments;       /* [columns][columns] X^T X of the inputs; overwritten */
    size_t inputs;         /* rows of X */
    unsigned char *halves; /* [rows][columns / 2] written, and the scales of groups, [rows][groups], with minima [rows][groups][2], as */
    uint16_t *scales;      /* checkpoints have them (gen/weights/safetensors.h) */
    /* Sums of squares over all inputs and outputs: of these, and of what they are off by, rounded to the nearest and for the inputs. */
    double power, nearest_error, error;
} rounded_matrix;

typedef enum { ROUND_FOR_INPUTS_DONE, ROUND_FOR_INPUTS_NO_MEMORY, ROUND_FOR_INPUTS_TOO_LARGE } round_for_inputs_result;

/* Rounds. Where outputs are no nearer than before, the matrix is rounded to the nearest. TOO_LARGE: a weight does not fit. */
round_for_inputs_result round_for_inputs(rounded_matrix *m);

#endif
