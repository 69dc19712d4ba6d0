/* Turns folded float64 weights into those of integer kernels: small integers, multipliers and shifts, such that no value that the kernels
   compute can overflow, for any input.

   A stage's sums of int16 inputs are exact in int32. The sum of an output is multiplied by its multiplier / 2^16, which gives all outputs
   of the stage one unit; sums over blocks follow; then a shift makes them int16 again. Ranges are bounds, not samples: every value of a
   stage is a known linear form of the projection's input, whose Euclidean norm is bounded, plus bounded rounding errors. */
#ifndef LOOKUPC_WEIGHTS_INTEGER_H
#define LOOKUPC_WEIGHTS_INTEGER_H

#include "gen/weights/quantise.h"

#include <stdint.h>

/* `count` blocks of `outputs` outputs of `folds` times `rows` inputs; all places in elements. */
typedef struct {
    size_t count, rows, outputs, folds;
    size_t x_at, x_stride, fold_gap;       /* inputs: of the first block, from block to block, from fold to fold */
    size_t target_at;                      /* outputs of the first block; the others follow */
    size_t weight_at, multiplier_at;       /* where rows of weights and their multipliers are packed, one after the other */
    size_t from, block, fold, row, output; /* where the tensor has weights: of the first block, and strides */
} integer_product;

typedef struct {
    const integer_product *products;
    size_t product_count;
    size_t blocks, width; /* of the Hadamard transform over the outputs; one block: none */
    size_t rows;          /* outputs that are read */
    bool first, last;     /* reads the projection's input; gives z */
    size_t z_at;          /* last: where z has its outputs */
    size_t shift_at;      /* not last: place of its shift */
} integer_step;

typedef struct {
    size_t d, bits, padded;
    int max_weight;        /* the largest |weight| */
    size_t element;        /* bytes of a weight: 1 or 2 */
    double unit, length;   /* of the projection's input: unit, and largest Euclidean norm, 0: that of d elements of 2^15 units */
    double magnitude_unit; /* of |z| after its shift */
    const integer_step *steps;
    size_t step_count;
    const double *weights, *bias; /* [bits] bias */
    const double *residual;       /* [d] factor of the input, element j mod `padded` for z_j; NULL: none */
    /* What is written: */
    void *packed;
    int16_t *multipliers, *packed_residual;
    int32_t *packed_bias;
    uint8_t *shifts, *z_shift, *residual_shift;
    double *largest; /* [bits] bounds of |z| */
    quantise_tally tally;
} integer_projection;

/* Packs the projection. False with one line in error[size], without a path. */
bool integer_pack_projection(integer_projection *projection, char *error, size_t size);

typedef struct {
    size_t d_out, h, rows, pitch;      /* `rows` of a table, elements from row to row */
    bool along;                        /* whether scores have the sum of |z| as a factor */
    double shares;                     /* bound of the sum of the other factor over a token's rows of a table */
    int sum_shift, magnitude_fraction; /* of the sum of |z| to 16 bits; binary places of |z| */
    int fraction;                      /* binary places of y */
    double unit;                       /* of the rows' scales; set by integer_plan_tables */
    const double *largest;             /* [h] bounds of the sums of |z| */
    quantise_type type;                /* of elements */
    const double *units;               /* [h][rows] of the rows, by quantise_unit */
    const double *bias;                /* [d_out] */
    int32_t *packed_bias;
    uint8_t *score_shift, *y_shift;
    quantise_tally tally;
} integer_tables;

/* Chooses units and shifts, and packs the bias. False with one line. */
bool integer_plan_tables(integer_tables *tables, char *error, size_t size);

/* Packs one row of d_out values, in elements of about `unit`, and its scale. */
void integer_pack_row(integer_tables *tables, const double *row, double unit, void *packed, uint16_t *scale);

#endif
