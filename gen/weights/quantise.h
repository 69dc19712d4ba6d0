/* The types that weights are stored in, and rounding to them from float64. */
#ifndef LOOKUPC_WEIGHTS_QUANTISE_H
#define LOOKUPC_WEIGHTS_QUANTISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    QUANTISE_F32,
    QUANTISE_BF16,
    QUANTISE_F16,
    QUANTISE_I8,
    QUANTISE_I7,
    QUANTISE_U8,
    QUANTISE_U7,
    QUANTISE_I16,
    QUANTISE_I4,
    QUANTISE_E4M3,
    QUANTISE_F64
} quantise_type;

/* The type of that name ("f32", "bf16" ...), that of gen/plan/dtype.lua, "f64", or "u8" and "u7": integers up to 127 and 63 with 128 and 64
   added to each; false for any other. */
bool quantise_type_named(const char *name, quantise_type *type);

size_t quantise_size(quantise_type type, size_t count); /* bytes of so many elements side by side */
bool quantise_scaled(quantise_type type);               /* whether elements are in units of their row's scale */
double quantise_largest(quantise_type type);            /* of its elements, in these units */

/* Sums of squares over all elements: of what rounding changed, and of the values before. */
typedef struct {
    double error, power;
} quantise_tally;

/* Rounds data[rows][width] in place, once, to the nearest value of the type, ties to even, and adds to the tally if it is not NULL. An
   element of a scaled type is then value / scale, where scale[row] is the largest |value| of the row / the type's largest element, itself
   rounded to float32 (0 for a row of zeros); for i4 / 7, 7.5 ... 14, whichever has the least error; for i16 no smaller than the sum of all
   |value| / (65534 - width / 2): the products of the integers with inputs of 16 bits then add up to less than 2^31. Others do not touch
   scale. False if a value does not fit the type. */
bool quantise_round(quantise_type type, double *data, size_t rows, size_t width, float *scale, quantise_tally *tally);

/* The unit that a row of width values has in a scaled type without limit of its sums, before it is rounded to float32. */
double quantise_unit(quantise_type type, const double *row, size_t width);

enum { QUANTISE_GROUP = 32 }; /* weights in i4, u4 or q8 that share a scale */

/* Rounds data[count], at most a group of weights in i4, u4 or, of 8 bits, q8, in place, to units of a half precision number whose bits
   become *scale.
   q8: to values from -127 to 127. The scale is the largest magnitude / 127, to the nearest, and among subnormal numbers where that is more
   than half a unit too small for the largest magnitude, whichever of it and the next one above loses less in squares.
   i4, where minimum is NULL: to values from -8 to 7. The scale is the value of the largest magnitude, the first of such, divided by the
   integer from -8 to 7 whose scale loses least in squares, in the order -8, 7, -7, 6 ... 1, -1: a group that has been rounded before stays
   as it is.
   u4: to values from 0 to 15 above *minimum, another such number. The smallest value is 0, 0.5 ... 2 units below the minimum and the
   largest one as far above its end, which become nearer then: of these 25 the first that loses least, each with a scale rounded as in q8.
   False if a value does not fit. */
bool quantise_group(double *data, size_t count, int bits, uint16_t *scale, uint16_t *minimum, quantise_tally *tally);

/* How a group may be rounded: to units from `least` to `most` of a scale, above a minimum. */
typedef struct {
    double scale, minimum, least, most;
} quantise_units;

/* What quantise_group tries for data[count], in its order, of which it takes the first that loses least: units[many], at most
   QUANTISE_MOST_UNITS; returns 0 if a value does not fit. */
enum { QUANTISE_MOST_UNITS = 50 };
size_t quantise_units_of(const double *data, size_t count, int bits, bool minimum, quantise_units *units);
quantise_units quantise_best_units(const double *data, size_t count, const quantise_units *tried, size_t many);

/* The nearest one, for a value. */
double quantise_in_units(double value, const quantise_units *of);

/* Whether a tensor has lost more than rounding to integers of so many levels can make it lose, at worst 31 of a group's 32 values half a
   unit each beside one of all levels: its values are too small for half precision. */
bool quantise_too_small(const quantise_tally *tally, double levels);
double quantise_levels(int bits, bool minimum); /* of groups; u4's are 15 / sqrt(2), as the minimum takes part */

/* to[index] <- a value that is one of the type already. */
void quantise_store(quantise_type type, double value, void *to, size_t index);

#endif
