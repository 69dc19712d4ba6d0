/* Rounding to the types of weights, for the reference. */
#include "harness/reference/type.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    int uses;               /* a sum of reference_use */
    int bits, min_exponent; /* floats that are rounded: significant bits, and exponent of the smallest normal value */
    double (*scale)(const double *row, size_t count, double max); /* of a row; NULL: elements are in no units */
    double max;                                                   /* the largest element of a scaled type */
    bool rounds_scores;
    double input_levels; /* to how many of them, at most, kernels round the inputs of a product; 0: they do not */
    bool unit_of_block;  /* each block of them has a unit of its own */
    size_t group;        /* elements of a row that share a scale of their own, 0: none do */
    void (*round_group)(double *row, size_t count); /* of at most so many */
    const char *blocks;                             /* of GGUF files that have the same numbers */
} type_row;

/* Adding and subtracting 1.5 * 2^52 units leaves the nearest whole number of units. */
double reference_round_to(double value, double unit)
{
    const double rounder = 0x1.8p52 * unit;
    return (value + rounder) - rounder;
}

/* A float of `bits` significant bits whose smallest normal value is 2^min_exponent. */
static double round_float(double value, int bits, int min_exponent)
{
    if (value == 0.0)
        return value;
    const int exponent = ilogb(value);
    return reference_round_to(value, ldexp(1.0, (exponent > min_exponent ? exponent : min_exponent) + 1 - bits));
}

static double scale_of_max(const double *row, size_t count, double max)
{
    double largest = 0.0;
    for (size_t i = 0; i < count; ++i)
        if (fabs(row[i]) > largest)
            largest = fabs(row[i]);
    return (double)(float)(largest / max);
}

static double scale_of_sum(const double *row, size_t count, double max)
{
    double largest = 0.0, sum = 0.0;
    for (size_t i = 0; i < count; ++i) {
        sum += fabs(row[i]);
        if (fabs(row[i]) > largest)
            largest = fabs(row[i]);
    }
    const double by_max = largest / max, by_sum = sum / (65534.0 - 0.5 * (double)count);
    return (double)(float)(by_max > by_sum ? by_max : by_sum);
}

/* The square of what a row changes by if it is rounded to whole numbers of `scale`, at most `max` of them. */
static double change_by(const double *row, size_t count, double scale, double max)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; ++i) {
        const double units = scale > 0.0 ? fmin(fmax(reference_round_to(row[i] / scale, 1.0), -max), max) : 0.0;
        const double change = units * scale - row[i];
        sum += change * change;
    }
    return sum;
}

static double scale_of_least_change(const double *row, size_t count, double max)
{
    double best = scale_of_max(row, count, max), least = change_by(row, count, best, max);
    for (double levels = max + 0.5; levels <= 2.0 * max; levels += 0.5) {
        const double scale = scale_of_max(row, count, levels), change = change_by(row, count, scale, max);
        if (change < least) {
            best = scale;
            least = change;
        }
    }
    return best;
}

enum {
    EVERY_USE = REFERENCE_TABLES | REFERENCE_WEIGHTS | REFERENCE_CACHE | REFERENCE_PROJECTION | REFERENCE_INPUTS,
};

/* To numbers of half precision, also beyond the largest one. */
static double to_half(double value)
{
    return round_float(value, 11, -14);
}

/* to[count] <- the values that are whole numbers of units above `origin`, from `least` to `more` more of them. Returns the sum of squares
   that this leaves. */
static double round_to_units(const double *row, size_t count, double unit, double origin, double least, double more, double *to)
{
    double squares = 0.0;
    for (size_t i = 0; i < count; ++i) {
        const double nearest = unit == 0.0 ? 0.0 : reference_round_to((row[i] - origin) / unit, 1.0);
        to[i] = fmin(fmax(nearest, least), least + more) * unit + origin;
        squares += (to[i] - row[i]) * (to[i] - row[i]);
    }
    return squares;
}

/* The next number of half precision above a positive one that to_half makes so much smaller that `most` of it end more than half of one
   before `most` of the value; else that itself. */
static double to_half_above(double value, double most)
{
    const double nearest = to_half(value), step = ldexp(1.0, (value < 0x1p-14 ? -14 : ilogb(value)) - 10);
    return most * value > (most + 0.5) * nearest ? nearest + step : nearest;
}

/* A group of 4-bit integers, by every unit that its largest value allows. */
static void round_group(double *row, size_t count)
{
    static const double levels[] = {-8, 7, -7, 6, -6, 5, -5, 4, -4, 3, -3, 2, -2, 1, -1};
    double largest = 0.0, least = INFINITY, best[32], to[32];
    for (size_t i = 0; i < count; ++i)
        if (fabs(row[i]) > fabs(largest))
            largest = row[i];
    for (size_t k = 0; k < sizeof levels / sizeof *levels; ++k) {
        const double unit = to_half(largest / levels[k]), squares = round_to_units(row, count, unit, 0.0, -8.0, 15.0, to);
        if (fabs(unit) <= 65504.0 && squares < least) {
            least = squares;
            memcpy(best, to, count * sizeof *best);
        }
    }
    memcpy(row, best, count * sizeof *row);
}

/* The same above a minimum, with up to two units of the values' range left out at either end. */
static void round_above_minimum(double *row, size_t count)
{
    double first = row[0], last = row[0], least = INFINITY, best[32], to[32];
    for (size_t i = 1; i < count; ++i) {
        first = fmin(first, row[i]);
        last = fmax(last, row[i]);
    }
    for (int tried = 0; tried < 2 * 25; ++tried) {
        const int start = tried / 10, end = tried / 2 % 5;
        const double wanted = (last - first) / (15.0 + (start + end) / 2.0),
                     unit = tried % 2 ? to_half_above(wanted, 15.0) : to_half(wanted);
        const double origin = to_half(first + start / 2.0 * unit), squares = round_to_units(row, count, unit, origin, 0.0, 15.0, to);
        if (unit <= 65504.0 && fabs(origin) <= 65504.0 && squares < least) {
            least = squares;
            memcpy(best, to, count * sizeof *best);
        }
    }
    memcpy(row, best, count * sizeof *row);
}

/* A group of integers from -127 to 127. */
static void round_group_of_bytes(double *row, size_t count)
{
    double largest = 0.0, to[32], above[32];
    for (size_t i = 0; i < count; ++i)
        largest = fmax(largest, fabs(row[i]));
    const double wanted = largest / 127.0, squares = round_to_units(row, count, to_half(wanted), 0.0, -127.0, 254.0, to);
    const bool more = round_to_units(row, count, to_half_above(wanted, 127.0), 0.0, -127.0, 254.0, above) < squares;
    memcpy(row, more ? above : to, count * sizeof *to);
}

static const type_row types[] = {
    [REFERENCE_F32] = {"f32", EVERY_USE},
    [REFERENCE_SINGLE] = {"single", REFERENCE_INPUTS, .bits = 24, .min_exponent = -126},
    [REFERENCE_BF16] = {"bf16", EVERY_USE, .bits = 8, .min_exponent = -126},
    [REFERENCE_F16] = {"f16", EVERY_USE, .bits = 11, .min_exponent = -14},
    [REFERENCE_I8] = {"i8", EVERY_USE, .scale = scale_of_max, .max = 127.0, .rounds_scores = true, .input_levels = 127.0,
                      .unit_of_block = true},
    [REFERENCE_I7] = {"i7", EVERY_USE, .scale = scale_of_max, .max = 63.0, .input_levels = 63.0, .unit_of_block = true},
    [REFERENCE_I16] = {"i16", REFERENCE_PROJECTION, .scale = scale_of_sum, .max = 32767.0, .input_levels = 32767.0},
    [REFERENCE_I4] = {"i4", REFERENCE_TABLES, .scale = scale_of_least_change, .max = 7.0, .rounds_scores = true},
    /* up to 448 in the format, in units of 2^8 here */
    [REFERENCE_E4M3] = {"e4m3", REFERENCE_TABLES | REFERENCE_WEIGHTS, .bits = 4, .min_exponent = -6 - 8, .scale = scale_of_max,
                        .max = 448.0 / 256.0},
    [REFERENCE_Q4] = {"i4", REFERENCE_WEIGHTS, .group = 32, .round_group = round_group, .blocks = "Q4_0"},
    [REFERENCE_U4] = {"u4", REFERENCE_WEIGHTS, .group = 32, .round_group = round_above_minimum, .blocks = "Q4_1"},
    [REFERENCE_Q8] = {"q8", REFERENCE_WEIGHTS, .group = 32, .round_group = round_group_of_bytes, .blocks = "Q8_0"},
};

bool reference_type_named(const char *name, reference_use use, reference_type *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
        if (strcmp(name, types[i].name) == 0 && (types[i].uses & (int)use)) {
            *type = (reference_type)i;
            return true;
        }
    return false;
}

bool reference_type_is_exact(reference_type type)
{
    return types[type].bits == 0 && types[type].scale == NULL && types[type].group == 0;
}

bool reference_type_is_scaled(reference_type type)
{
    return types[type].scale != NULL;
}

bool reference_type_rounds_scores(reference_type type)
{
    return types[type].rounds_scores;
}

double reference_type_input_levels(reference_type type)
{
    return types[type].input_levels;
}

bool reference_type_unit_of_block(reference_type type)
{
    return types[type].unit_of_block;
}

double reference_round(reference_type type, double value)
{
    return types[type].bits ? round_float(value, types[type].bits, types[type].min_exponent) : value;
}

double reference_scale(reference_type type, const double *row, size_t count)
{
    return types[type].scale(row, count, types[type].max);
}

/* The nearest element, integer or float, that is at most the largest one, times the scale. */
static double round_scaled(const type_row *type, double value, double scale)
{
    if (scale == 0.0)
        return 0.0;
    const double units = value / scale;
    const double nearest = type->bits ? round_float(units, type->bits, type->min_exponent) : reference_round_to(units, 1.0);
    return (nearest > type->max ? type->max : nearest < -type->max ? -type->max : nearest) * scale;
}

void reference_round_row(reference_type type, double *row, size_t count)
{
    const type_row *of = &types[type];
    if (of->group) {
        for (size_t i = 0; i < count; i += of->group)
            of->round_group(row + i, count - i < of->group ? count - i : of->group);
        return;
    }
    const double scale = of->scale ? of->scale(row, count, of->max) : 1.0;
    for (size_t i = 0; i < count; ++i)
        row[i] = of->scale ? round_scaled(of, row[i], scale) : reference_round(type, row[i]);
}

bool reference_type_has_blocks(reference_type type, const char *blocks)
{
    return types[type].blocks && strcmp(types[type].blocks, blocks) == 0;
}
