/* The reference's tables as a blob holds them: rounded to the type of its elements, in float64, by code of its own. */
#ifndef LOOKUPC_HARNESS_REFERENCE_TABLES_H
#define LOOKUPC_HARNESS_REFERENCE_TABLES_H

#include "harness/reference/lookup.h"
#include "harness/reference/type.h"

/* Where rounded rows come from; all must outlive the weights made of it. */
typedef struct {
    const reference_model *model;
    const reference_weights *exact;
    reference_type type;
    bool byte_scores; /* kernels may round scores to 7 bits, not to 15 */
} reference_tables;

/* The exact weights but for the tables, whose rows, model->scale folded in, are rounded to the nearest value of the type, ties to even.
   Of a scaled type row_scale tells the scales, the float32 largest |value| of the row / largest element. f32 is left exact: its rounding is
   part of what a kernel may do. */
reference_weights reference_tables_rounded(reference_tables *tables);

#endif
