/* Rounding of float64 to the types of weights; see quantise.h. */
#include "gen/weights/quantise.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* One row a type; everything below loops over rows or asks one. */
typedef struct type_row {
    const char *name;
    size_t bytes; /* of an element; 0: half a byte, the first of two in the low bits */
    double max;   /* the largest element */
    double (*nearest)(const struct type_row *type, double value);
    uint64_t (*code)(const struct type_row *type, double value); /* the bits of an element, in the lowest bytes */
    int bits, min_exponent;                                      /* floats: significant bits, exponent of the smallest normal value */
    bool scaled;                                                 /* in units of the row's scale */
    bool fits;                                                   /* the scale is the one with the least error (scale_of_least_error) */
    bool sums_fit;                                               /* the scale is so large that sums with 16-bit inputs fit 31 bits */
} type_row;

static double itself(const type_row *type, double value)
{
    (void)type;
    return value;
}

static double nearest_single(const type_row *type, double value)
{
    (void)type;
    return (double)(float)value;
}

/* Ties to even, as the sum has no bits for a fraction: for magnitudes below 2^51. Vectors of any instruction set can do it. */
static double nearest_integer(const type_row *type, double value)
{
    const double shift = 0x1.8p52;
    (void)type;
    return (value + shift) - shift;
}

/* Of a float of the type: the power of two that its unit in the last place is. */
static int unit_of(const type_row *type, double value)
{
    int exponent = type->min_exponent;
    if (value != 0.0)
        frexp(value, &exponent); /* |value| in [2^(exponent-1), 2^exponent) */
    return (exponent - 1 > type->min_exponent ? exponent - 1 : type->min_exponent) - (type->bits - 1);
}

/* The nearest multiple of the unit in the last place; rint rounds ties to even. */
static double nearest_float(const type_row *type, double value)
{
    const int unit = unit_of(type, value);
    return ldexp(rint(ldexp(value, -unit)), unit);
}

static uint64_t code_double(const type_row *type, double value)
{
    (void)type;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t code_single(const type_row *type, double value)
{
    (void)type;
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return bits;
}

static uint64_t code_integer(const type_row *type, double value)
{
    (void)type;
    return (uint64_t)(int64_t)value;
}

/* An integer, and 1 more than the largest one: never negative. */
static uint64_t code_offset(const type_row *type, double value)
{
    return code_integer(type, value + type->max + 1.0);
}

/* Sign, exponent, fraction. Counted in units in the last place, a normal value has `bits` bits, and the first of them adds 1 to the
   exponent; 0 and subnormal values have fewer bits, so that their exponent stays 0. */
static uint64_t code_float(const type_row *type, double value)
{
    const int unit = unit_of(type, value), exponent = unit + type->bits - 1 - type->min_exponent;
    const uint64_t sign = signbit(value) ? (uint64_t)1 << (8 * type->bytes - 1) : 0;
    return sign | (((uint64_t)exponent << (type->bits - 1)) + (uint64_t)ldexp(fabs(value), -unit));
}

static const type_row types[] = {
    [QUANTISE_F32] = {"f32", 4, 0x1.fffffep127, nearest_single, code_single},
    [QUANTISE_BF16] = {"bf16", 2, 0x1.fep127, nearest_float, code_float, .bits = 8, .min_exponent = -126},
    [QUANTISE_F16] = {"f16", 2, 0x1.ffcp15, nearest_float, code_float, .bits = 11, .min_exponent = -14},
    [QUANTISE_I8] = {"i8", 1, 127.0, nearest_integer, code_integer, .scaled = true},
    [QUANTISE_I7] = {"i7", 1, 63.0, nearest_integer, code_integer, .scaled = true},
    [QUANTISE_U8] = {"u8", 1, 127.0, nearest_integer, code_offset, .scaled = true},
    [QUANTISE_U7] = {"u7", 1, 63.0, nearest_integer, code_offset, .scaled = true},
    [QUANTISE_I16] = {"i16", 2, 32767.0, nearest_integer, code_integer, .scaled = true, .sums_fit = true},
    [QUANTISE_I4] = {"i4", 0, 7.0, nearest_integer, code_integer, .scaled = true, .fits = true},
    /* 1/256 of what the format means, as the row's scale makes up for it: gen/plan/dtype.lua */
    [QUANTISE_E4M3] = {"e4m3", 1, 0x1.cp0, nearest_float, code_float, .bits = 4, .min_exponent = -14, .scaled = true},
    [QUANTISE_F64] = {"f64", 8, DBL_MAX, itself, code_double},
};

bool quantise_type_named(const char *name, quantise_type *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        if (strcmp(name, types[i].name) == 0) {
            *type = (quantise_type)i;
            return true;
        }
    }
    return false;
}

bool quantise_scaled(quantise_type type)
{
    return types[type].scaled;
}

double quantise_largest(quantise_type type)
{
    return types[type].max;
}

size_t quantise_size(quantise_type type, size_t count)
{
    return types[type].bytes ? types[type].bytes * count : count / 2 + count % 2;
}

/* The largest magnitude, of four runs of elements. */
static double largest_of(const double *values, size_t count)
{
    double largest[4] = {0.0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (size_t k = 0; k < 4; ++k)
            largest[k] = fabs(values[i + k]) > largest[k] ? fabs(values[i + k]) : largest[k];
    for (; i < count; ++i)
        largest[0] = fmax(largest[0], fabs(values[i]));
    return fmax(fmax(largest[0], largest[1]), fmax(largest[2], largest[3]));
}

static inline double bounded(double value, double most)
{
    const double low = value > -most ? value : -most;
    return low < most ? low : most;
}

/* What elements of a row are divided by; those of a row of zeros stay zeros. */
static inline double divisor_of(float scale)
{
    return scale > 0.0f ? (double)scale : 1.0;
}

static double element_of(const type_row *type, double value, float scale)
{
    return scale > 0.0f ? bounded(type->nearest(type, value / (double)scale), type->max) : 0.0;
}

/* Of the scales that make the largest magnitude 7, 7.5 ... 14, of which elements above 7 become 7, the first with the least sum of squared
   errors: in four bits a finer unit is worth more than a row's few largest elements. All are tried at once, so that vectors can do it. */
static double scale_of_least_error(const type_row *type, const double *row, size_t width, double largest)
{
    enum { TRIED = 15 };
    double scales[TRIED], divisors[TRIED], errors[TRIED] = {0.0};
    for (size_t k = 0; k < TRIED; ++k) {
        scales[k] = (double)(float)(largest / (type->max + 0.5 * (double)k));
        divisors[k] = divisor_of((float)scales[k]);
    }
    for (size_t i = 0; i < width; ++i) {
        const double value = row[i];
        for (size_t k = 0; k < TRIED; ++k) {
            const double error = bounded(nearest_integer(type, value / divisors[k]), type->max) * scales[k] - value;
            errors[k] += error * error;
        }
    }
    size_t best = 0;
    for (size_t k = 1; k < TRIED; ++k)
        best = errors[k] < errors[best] ? k : best;
    return scales[best];
}

double quantise_unit(quantise_type number, const double *row, size_t width)
{
    const type_row *type = &types[number];
    const double largest = largest_of(row, width);
    return type->fits ? scale_of_least_error(type, row, width, largest) : largest / type->max;
}

/* Turns a row into elements in units of the scale returned; NAN if that is not finite. The sum of a row of i16 stays below 2^16, each
   integer half a unit off at most. */
static float round_scaled(quantise_type number, double *row, size_t width, quantise_tally *tally)
{
    const type_row *type = &types[number];
    const double room = 65534.0 - (double)width / 2.0;
    double sum = 0.0;
    for (size_t i = 0; type->sums_fit && i < width; ++i)
        sum += fabs(row[i]);
    const float scale = (float)fmax(quantise_unit(number, row, width), sum / room);
    if (!isfinite(scale))
        return NAN;
    for (size_t i = 0; tally && i < width; ++i) {
        const double error = element_of(type, row[i], scale) * (double)scale - row[i];
        tally->error += error * error;
        tally->power += row[i] * row[i];
    }
    if (type->nearest == nearest_integer)
        for (size_t i = 0; i < width; ++i)
            row[i] = bounded(nearest_integer(type, row[i] / divisor_of(scale)), type->max);
    else
        for (size_t i = 0; i < width; ++i)
            row[i] = element_of(type, row[i], scale);
    return scale;
}

bool quantise_round(quantise_type number, double *data, size_t rows, size_t width, float *scale, quantise_tally *tally)
{
    const type_row *type = &types[number];
    for (size_t row = 0; row < rows; ++row, data += width) {
        if (type->scaled) {
            scale[row] = round_scaled(number, data, width, tally);
            if (isnan(scale[row]))
                return false;
            continue;
        }
        for (size_t i = 0; i < width; ++i) {
            const double rounded = type->nearest(type, data[i]), error = rounded - data[i];
            if (!(fabs(rounded) <= type->max))
                return false;
            if (tally) {
                tally->error += error * error;
                tally->power += data[i] * data[i];
            }
            data[i] = rounded;
        }
    }
    return true;
}

double quantise_in_units(double value, const quantise_units *of)
{
    const double units = of->scale != 0.0 ? nearest_integer(NULL, (value - of->minimum) / of->scale) : 0.0;
    return units < of->least ? of->least : units > of->most ? of->most : units;
}

/* What a unit stands for, less the value. */
static double error_in_units(double value, double units, const quantise_units *of)
{
    return units * of->scale + of->minimum - value;
}

quantise_units quantise_best_units(const double *data, size_t count, const quantise_units *tried, size_t many)
{
    quantise_units best = tried[0];
    double least = INFINITY;
    for (size_t k = 0; least > 0.0 && k < many; ++k) {
        double loss = 0.0;
        for (size_t i = 0; i < count; ++i) {
            const double error = error_in_units(data[i], quantise_in_units(data[i], &tried[k]), &tried[k]);
            loss += error * error;
        }
        if (loss < least) {
            best = tried[k];
            least = loss;
        }
    }
    return best;
}

/* The halves to try for a scale, scales[at most 2]; returns how many. The nearest one, and where `most` of that are more than half of it
   below `most` of the scale, as it may be among subnormal numbers, the next one above. */
static size_t halves_for(double scale, double most, double *scales)
{
    const type_row *half = &types[QUANTISE_F16];
    const int unit = unit_of(half, scale);
    scales[0] = half->nearest(half, scale);
    scales[1] = ldexp(ceil(ldexp(scale, -unit)), unit);
    return most * scale > (most + 0.5) * scales[0] ? 2 : 1;
}

size_t quantise_units_of(const double *data, size_t count, int bits, bool minimum, quantise_units *units)
{
    static const int units_of_largest[] = {-8, 7, -7, 6, -6, 5, -5, 4, -4, 3, -3, 2, -2, 1, -1};
    const type_row *half = &types[QUANTISE_F16];
    double largest = 0.0, low = INFINITY, high = -INFINITY;
    size_t many = 0;
    for (size_t i = 0; i < count; ++i) {
        if (fabs(data[i]) > fabs(largest) || isnan(data[i]))
            largest = data[i];
        low = fmin(low, data[i]);
        high = fmax(high, data[i]);
    }
    if (!(fabs(largest) <= (minimum ? 1.0 : bits == 8 ? 127.0 : 7.0) * half->max))
        return 0;
    double scales[2];
    if (bits == 8) {
        many = halves_for(fabs(largest) / 127.0, 127.0, scales);
        for (size_t k = 0; k < many; ++k)
            units[k] = (quantise_units){scales[k], 0.0, -127.0, 127.0};
        return many;
    }
    for (size_t k = 0; !minimum && k < sizeof units_of_largest / sizeof *units_of_largest; ++k) {
        const double unit = half->nearest(half, largest / units_of_largest[k]);
        if (fabs(unit) <= half->max)
            units[many++] = (quantise_units){unit, 0.0, -8.0, 7.0};
    }
    for (size_t k = 0; minimum && k < 25; ++k) {
        const double below = 0.5 * (double)(k / 5), above = 0.5 * (double)(k % 5);
        const size_t tried = halves_for((high - low) / (15.0 + below + above), 15.0, scales);
        for (size_t i = 0; i < tried; ++i) {
            const double lowest = half->nearest(half, low + below * scales[i]);
            if (scales[i] <= half->max && fabs(lowest) <= half->max)
                units[many++] = (quantise_units){scales[i], lowest, 0.0, 15.0};
        }
    }
    return many;
}

bool quantise_too_small(const quantise_tally *tally, double levels)
{
    return tally->error > 8.0 / (levels * levels) * tally->power;
}

double quantise_levels(int bits, bool minimum)
{
    return bits == 8 ? 127.0 : minimum ? 10.0 : 7.0;
}

bool quantise_group(double *data, size_t count, int bits, uint16_t *scale, uint16_t *minimum, quantise_tally *tally)
{
    const type_row *half = &types[QUANTISE_F16];
    quantise_units tried[QUANTISE_MOST_UNITS];
    const size_t many = quantise_units_of(data, count, bits, minimum != NULL, tried);
    if (many == 0)
        return false;
    const quantise_units best = quantise_best_units(data, count, tried, many);
    for (size_t i = 0; i < count; ++i) {
        const double units = quantise_in_units(data[i], &best), error = error_in_units(data[i], units, &best);
        if (tally) {
            tally->error += error * error;
            tally->power += data[i] * data[i];
        }
        data[i] = units;
    }
    *scale = (uint16_t)half->code(half, best.scale);
    if (minimum)
        *minimum = (uint16_t)half->code(half, best.minimum);
    return true;
}

void quantise_store(quantise_type number, double value, void *to, size_t index)
{
    const type_row *type = &types[number];
    const uint64_t code = type->code(type, value);
    uint8_t *const bytes = to;
    switch (type->bytes) {
    case 0: {
        const unsigned shift = index % 2 ? 4 : 0;
        bytes[index / 2] = (uint8_t)((bytes[index / 2] & 0xf0u >> shift) | (code & 15u) << shift);
        break;
    }
    case 1: bytes[index] = (uint8_t)code; break;
    case 2: ((uint16_t *)to)[index] = (uint16_t)code; break;
    case 4: ((uint32_t *)to)[index] = (uint32_t)code; break;
    default: ((uint64_t *)to)[index] = code; break;
    }
}
