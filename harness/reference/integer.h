/* The integer kernels' arithmetic, operation by operation in int64 from its description: emitted integers must equal these. Nothing is
   shared with the generator but the blob, whose integers are what weights have become.

   Shifts of the blob: of |z|, residual, score and y, then of stages 1 to 3 of every repeat of BH4. Its weights lie in this order: for every
   repeat, stage and block the outputs, for each of them its inputs. Inputs beyond d have no weights, nor have outputs of the last repeat
   beyond h tau: there an output has the inputs of all blocks of which the Hadamard transform would have made it by adding alone. There is a
   multiplier for every output. */
#ifndef LOOKUPC_HARNESS_REFERENCE_INTEGER_H
#define LOOKUPC_HARNESS_REFERENCE_INTEGER_H

#include "harness/reference/lookup.h"

#include <stdint.h>

typedef struct {
    const reference_model *model;
    double x_unit;  /* of the input */
    size_t element; /* bytes of a weight: 1 or 2 */
    size_t pitch;   /* elements from row to row of the tables */
    const void *projection;
    const int16_t *multipliers, *residual; /* NULL: no residual */
    const uint8_t *shifts;
    const int32_t *projection_bias, *bias;
    const uint16_t *table_scales;
    const int8_t *tables;
    bool halves; /* the tables' elements are half bytes, the first of two in the low bits */
} integer_weights;

/* What the kernels compute for one token of a model with one neighbour or two.  row, score [h][neighbours], y [d_out]. False, with what
   and where in error, if a value leaves the range of its type or memory is short. */
bool reference_integer(const integer_weights *weights, const int16_t *x, uint32_t *row, int32_t *score, int32_t *y, char *error,
                       size_t error_size);

/* The two tables of the score, as the description has them: log2[257] of 2^15 log2(1 + exp(-2 z)) for z = 0, 2^-5 … 8, power[33] of
   2^15 2^-f for f = 0, 2^-5 … 1; and 2^15 log2(1 + exp(-2 z)) and 2^15 2^-f by them, z in units of 2^-12, f of 2^-15. */
void reference_integer_tables(uint16_t *log2_table, uint16_t *power_table);
int64_t reference_integer_log2(const uint16_t *table, int64_t z);
int64_t reference_integer_power(const uint16_t *table, int64_t f);

#endif
