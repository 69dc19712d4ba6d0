/* Rounding to the types of weights, for the reference. */
#include "harness/reference/type.h"

#include <math.h>

/* Adding and subtracting 1.5 * 2^52 units leaves the nearest whole number of units. */
double reference_round_to(double value, double unit)
{
    const double rounder = 0x1.8p52 * unit;
    return (value + rounder) - rounder;
}

/* A float of `bits` significant bits whose smallest normal value is 2^least. */
static double round_float(double value, int bits, int least)
{
    if (value == 0.0)
        return value;
    const int exponent = ilogb(value);
    return reference_round_to(value, ldexp(1.0, (exponent > least ? exponent : least) + 1 - bits));
}

double reference_round(reference_type type, double value)
{
    if (type == REFERENCE_BF16)
        return round_float(value, 8, -126);
    if (type == REFERENCE_F16)
        return round_float(value, 11, -14);
    return value;
}

double reference_scale_i8(const double *row, size_t count)
{
    double largest = 0.0;
    for (size_t o = 0; o < count; ++o)
        if (fabs(row[o]) > largest)
            largest = fabs(row[o]);
    return (double)(float)(largest / 127.0);
}

/* The nearest of the integers from -most to most, times the scale. */
static double round_integer(double value, double scale, double most)
{
    if (scale == 0.0)
        return 0.0;
    const double integer = reference_round_to(value / scale, 1.0);
    return (integer > most ? most : integer < -most ? -most : integer) * scale;
}

double reference_round_i8(double value, double scale)
{
    return round_integer(value, scale, 127.0);
}

void reference_round_row_i16(double *row, size_t count)
{
    double largest = 0.0, sum = 0.0;
    for (size_t i = 0; i < count; ++i) {
        sum += fabs(row[i]);
        if (fabs(row[i]) > largest)
            largest = fabs(row[i]);
    }
    const double by_size = largest / 32767.0, by_sum = sum / (65534.0 - 0.5 * (double)count);
    const double scale = (double)(float)(by_size > by_sum ? by_size : by_sum);
    for (size_t i = 0; i < count; ++i)
        row[i] = round_integer(row[i], scale, 32767.0);
}
