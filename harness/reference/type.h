/* The types that the reference's weights may be rounded to, by code of its own. */
#ifndef LOOKUPC_HARNESS_REFERENCE_TYPE_H
#define LOOKUPC_HARNESS_REFERENCE_TYPE_H

#include <stddef.h>

typedef enum { REFERENCE_F32, REFERENCE_BF16, REFERENCE_F16, REFERENCE_I8, REFERENCE_I16 } reference_type;

/* The nearest multiple of unit, a power of two, ties to even. */
double reference_round_to(double value, double unit);

/* The nearest value of a type, ties to even. f32 is left exact: its rounding is part of what a kernel may do. Not for integers. */
double reference_round(reference_type type, double value);

/* The scale of a row of i8, and a value of the row rounded: an integer from -127 to 127 times the scale. */
double reference_scale_i8(const double *row, size_t count);
double reference_round_i8(double value, double scale);

/* Rounds a row to i16: integers from -32767 to 32767 times a scale, of absolute values below 2^16 in all.  row [count] */
void reference_round_row_i16(double *row, size_t count);

#endif
