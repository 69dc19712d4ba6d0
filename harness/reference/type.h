/* The types that the reference's weights may be rounded to, by code of its own: one row of a table each. */
#ifndef LOOKUPC_HARNESS_REFERENCE_TYPE_H
#define LOOKUPC_HARNESS_REFERENCE_TYPE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    REFERENCE_F32,
    REFERENCE_SINGLE,
    REFERENCE_BF16,
    REFERENCE_F16,
    REFERENCE_I8,
    REFERENCE_I7,
    REFERENCE_I16,
    REFERENCE_I4,
    REFERENCE_E4M3,
    REFERENCE_Q4,
    REFERENCE_U4,
    REFERENCE_Q8
} reference_type;

/* What a type is used for. */
typedef enum {
    REFERENCE_TABLES = 1,
    REFERENCE_CACHE = 2,
    REFERENCE_PROJECTION = 4,
    REFERENCE_INPUTS = 8,   /* of the products of blocks and whole models */
    REFERENCE_WEIGHTS = 16, /* rows of a transformer's weights */
} reference_use;

/* The type of that name: those of lookupc, where f32 leaves values as they are, and "single", which rounds them to float32. False if there
   is none for that use. */
bool reference_type_named(const char *name, reference_use use, reference_type *type);

/* Whether the reference leaves values as they are: the type's rounding is part of what a kernel may do. */
bool reference_type_is_exact(reference_type type);

/* Whether elements are in units of their row's scale, and what kernels may round, too: the scores of a gather of integers, and the inputs
   of a product of integers, to so many multiples of a unit at most, 0 if they do not (error_bounds.h). */
bool reference_type_is_scaled(reference_type type);
bool reference_type_rounds_scores(reference_type type);
double reference_type_input_levels(reference_type type);
bool reference_type_unit_of_block(reference_type type); /* whether each block of inputs has a unit of its own, not each token */

/* The nearest multiple of unit, a power of two, ties to even. */
double reference_round_to(double value, double unit);

/* The nearest value of a type without scale, ties to even; itself for an exact type. */
double reference_round(reference_type type, double value);

/* The scale of a row of a scaled type: that of i8 makes its largest magnitude 127, that of i7 63; that of i16 makes it at most 32767, and
   all magnitudes together less than 2^16; that of i4 makes it 7, 7.5 ... 14, whichever changes the row least. It is a float32. */
double reference_scale(reference_type type, const double *row, size_t count);

/* Rounds a row to the nearest values of the type; a scaled one to integers times its scale. Weights in i4: each 32 of them with a scale in
   half precision, for which the one of the largest magnitude is an integer from -8 to 7, that which leaves the least squares; those in u4
   with a minimum, too, up to two units above the smallest one, as is the end of 15 units below the largest; those in q8 with a scale that
   makes the largest magnitude 127. Where half precision has too small a number for a scale of these two, the next one above is tried. */
void reference_round_row(reference_type type, double *row, size_t count);

/* Whether blocks of a GGUF file that it calls so have the scales and integers of the type. */
bool reference_type_has_blocks(reference_type type, const char *blocks);

#endif
