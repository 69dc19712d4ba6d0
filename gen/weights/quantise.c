/* Rounding of float64 to the types of weights; see quantise.h. */
#include "gen/weights/quantise.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* One row a type: significant bits, exponent of the smallest normal value, largest value. integers have a rule of their own. */
static const struct {
    const char *name;
    size_t bytes;
    int bits, least_exponent;
    double largest;
} types[] = {
    [QUANTISE_F32] = {"f32", 4, 24, -126, 0x1.fffffep127},
    [QUANTISE_BF16] = {"bf16", 2, 8, -126, 0x1.fep127},
    [QUANTISE_F16] = {"f16", 2, 11, -14, 0x1.ffcp15},
    [QUANTISE_I8] = {"i8", 1, 0, 0, 127.0},
    [QUANTISE_I16] = {"i16", 2, 0, 0, 32767.0},
    [QUANTISE_F64] = {"f64", 8, 53, -1022, DBL_MAX},
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
    return types[type].bits == 0;
}

size_t quantise_bytes(quantise_type type)
{
    return types[type].bytes;
}

/* The nearest multiple of the unit in the last place that the value's exponent has; rint rounds ties to even. */
static double nearest(quantise_type type, double value)
{
    if (type == QUANTISE_F64)
        return value;
    if (type == QUANTISE_F32)
        return (double)(float)value;
    int exponent = 0;
    frexp(value, &exponent); /* |value| in [2^(exponent-1), 2^exponent) */
    const int least = types[type].least_exponent, normal = exponent - 1 > least ? exponent - 1 : least;
    const int unit = normal - (types[type].bits - 1);
    return ldexp(rint(ldexp(value, -unit)), unit);
}

/* Turns a row into integers in units of the scale returned; NAN if that is not finite. The sum of a row of i16 stays below 2^16, each
   integer half a unit off at most. */
static float quantise_row(quantise_type type, double *row, size_t width, quantise_tally *tally)
{
    const double most = types[type].largest;
    double largest = 0.0, sum = 0.0;
    for (size_t i = 0; i < width; ++i) {
        largest = fmax(largest, fabs(row[i]));
        sum += fabs(row[i]);
    }
    const double room = type == QUANTISE_I16 ? 65534.0 - (double)width / 2.0 : INFINITY;
    const float scale = (float)fmax(largest / most, sum / room);
    if (!isfinite(scale))
        return NAN;
    for (size_t i = 0; i < width; ++i) {
        const double integer = scale > 0.0f ? fmin(fmax(rint(row[i] / (double)scale), -most), most) : 0.0;
        const double error = integer * (double)scale - row[i];
        tally->error += error * error;
        tally->power += row[i] * row[i];
        row[i] = integer;
    }
    return scale;
}

bool quantise_round(quantise_type type, double *data, size_t rows, size_t width, float *scale, quantise_tally *tally)
{
    for (size_t row = 0; row < rows; ++row, data += width) {
        if (quantise_scaled(type)) {
            scale[row] = quantise_row(type, data, width, tally);
            if (isnan(scale[row]))
                return false;
            continue;
        }
        for (size_t i = 0; i < width; ++i) {
            const double rounded = nearest(type, data[i]), error = rounded - data[i];
            if (!(fabs(rounded) <= types[type].largest))
                return false;
            tally->error += error * error;
            tally->power += data[i] * data[i];
            data[i] = rounded;
        }
    }
    return true;
}

static uint32_t float_bits(double value)
{
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return bits;
}

/* Sign, 5 bits of exponent + 15, 10 of fraction; below 2^-14 the fraction counts units of 2^-24. */
static uint16_t half_bits(double value)
{
    const uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000u;
    const double size = fabs(value);
    const uint32_t rest = size < 0x1p-14 ? (uint32_t)(size * 0x1p24) : ((bits & 0x7FFFFFFFu) - (112u << 23)) >> 13;
    return (uint16_t)(sign | rest);
}

void quantise_store(quantise_type type, double value, void *to, size_t index)
{
    switch (type) {
    case QUANTISE_F32: ((float *)to)[index] = (float)value; break;
    case QUANTISE_BF16: ((uint16_t *)to)[index] = (uint16_t)(float_bits(value) >> 16); break;
    case QUANTISE_F16: ((uint16_t *)to)[index] = half_bits(value); break;
    case QUANTISE_I8: ((int8_t *)to)[index] = (int8_t)value; break;
    case QUANTISE_I16: ((int16_t *)to)[index] = (int16_t)value; break;
    case QUANTISE_F64: ((double *)to)[index] = value; break;
    }
}
