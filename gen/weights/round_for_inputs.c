/* Rounds a matrix to 4 bits in groups for the inputs that it is multiplied by; see round_for_inputs.h. */
#include "gen/weights/round_for_inputs.h"

#include "gen/weights/cholesky.h"
#include "gen/weights/matmul.h"
#include "gen/weights/quantise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = QUANTISE_GROUP, BLOCK = 64 };

/* One way to round all rows: what integers stand for, and these with their scales. */
typedef struct {
    double *values; /* [rows][columns] */
    unsigned char *halves;
    uint16_t *scales;
} rounding;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t numbers_of(const rounded_matrix *m)
{
    return (m->columns + GROUP - 1) / GROUP * (m->minimum ? 2 : 1);
}

/* Puts the integers units[count] of a group of row `row`, which begins at column `at`, and what they are units of in their places. */
static void store(const rounded_matrix *m, const rounding *to, size_t row, size_t at, size_t count, const double *units,
                  const quantise_units *of)
{
    uint16_t *const scale = to->scales + row * numbers_of(m) + at / GROUP * (m->minimum ? 2 : 1);
    quantise_store(QUANTISE_F16, of->scale, scale, 0);
    if (m->minimum)
        quantise_store(QUANTISE_F16, of->minimum, scale, 1);
    for (size_t i = 0; i < count; ++i) {
        to->values[row * m->columns + at + i] = units[i] * of->scale + of->minimum;
        quantise_store(QUANTISE_I4, units[i], to->halves + row * (m->columns / 2), at + i);
    }
}

/* Units and, returned, the loss of rounding a row's group with the scale tried: weights[count], shifted by what errors[l] of those before
   add, shift[i] / v[i][i]. v [GROUP][GROUP]: of the group. `most`: a loss that is no longer worth while. */
static double round_group(const quantise_units *tried, size_t count, const double *weights, const double *shifts, double (*v)[GROUP],
                          double most, double *units)
{
    double shift[GROUP], loss = 0.0;
    memcpy(shift, shifts, count * sizeof *shift);
    for (size_t i = 0; i < count && loss < most; ++i) {
        const double wanted = weights[i] + shift[i] / v[i][i];
        units[i] = quantise_in_units(wanted, tried);
        const double value = units[i] * tried->scale + tried->minimum, error = weights[i] - value;
        loss += (wanted - value) * (wanted - value) * v[i][i] * v[i][i];
        for (size_t j = i + 1; j < count; ++j)
            shift[j] += error * v[i][j];
    }
    return loss;
}

/* Rounds column by column, V V^T being the moments: errors[rows][columns] and shifts[rows][GROUP] are overwritten. */
static bool round_columns(const rounded_matrix *m, const rounding *to, double *errors, double *shifts)
{
    const size_t n = m->columns;
    for (size_t at = 0; at < n; at += GROUP) {
        const size_t count = least(n - at, GROUP);
        double v[GROUP][GROUP] = {{0.0}};
        for (size_t l = 0; l < count; ++l)
            memcpy(v[l] + l, m->moments + (at + l) * n + at + l, (count - l) * sizeof(double));
        memset(shifts, 0, m->rows * GROUP * sizeof *shifts);
        matmul_add(1.0, (matmul_sizes){m->rows, count, at}, (matmul_matrix){errors, n, 1}, (matmul_matrix){m->moments + at, n, 1}, shifts,
                   GROUP);
        for (size_t row = 0; row < m->rows; ++row) {
            const double *const weights = m->weights + row * n + at, *const shift = shifts + row * GROUP;
            quantise_units tried[QUANTISE_MOST_UNITS], best = {0};
            double wanted[GROUP], units[GROUP], best_units[GROUP], loss = INFINITY;
            for (size_t i = 0; i < count; ++i)
                wanted[i] = weights[i] + shift[i] / v[i][i];
            const size_t all = quantise_units_of(wanted, count, 4, m->minimum, tried);
            for (size_t k = 0; k < all; ++k) {
                const double own = round_group(&tried[k], count, weights, shift, v, loss, units);
                if (own < loss) {
                    loss = own, best = tried[k];
                    memcpy(best_units, units, count * sizeof *units);
                }
            }
            if (!(loss < INFINITY))
                return false;
            store(m, to, row, at, count, best_units, &best);
            for (size_t i = 0; i < count; ++i)
                errors[row * n + at + i] = weights[i] - to->values[row * n + at + i];
        }
    }
    return true;
}

static bool round_to_nearest(const rounded_matrix *m, const rounding *to)
{
    for (size_t row = 0; row < m->rows; ++row)
        for (size_t at = 0; at < m->columns; at += GROUP) {
            const size_t count = least(m->columns - at, GROUP);
            quantise_units tried[QUANTISE_MOST_UNITS];
            double units[GROUP];
            const double *const weights = m->weights + row * m->columns + at;
            const size_t all = quantise_units_of(weights, count, 4, m->minimum, tried);
            if (all == 0)
                return false;
            const quantise_units best = quantise_best_units(weights, count, tried, all);
            for (size_t i = 0; i < count; ++i)
                units[i] = quantise_in_units(weights[i], &best);
            store(m, to, row, at, count, units, &best);
        }
    return true;
}

/* The sum of squares of the inputs times the rows a[rows][columns]; products: as large, overwritten. */
static double squares(const rounded_matrix *m, const double *a, double *products)
{
    const size_t n = m->columns, count = m->rows * n;
    double sum = 0.0;
    memset(products, 0, count * sizeof *products);
    matmul_add(1.0, (matmul_sizes){m->rows, n, n}, (matmul_matrix){a, n, 1}, (matmul_matrix){m->moments, n, 1}, products, n);
    for (size_t i = 0; i < count; ++i)
        sum += a[i] * products[i];
    return sum;
}

/* off[] <- weights less what they become; returns its squares. */
static double error_of(const rounded_matrix *m, const rounding *of, double *off, double *products)
{
    for (size_t i = 0; i < m->rows * m->columns; ++i)
        off[i] = m->weights[i] - of->values[i];
    return squares(m, off, products);
}

/* Turns the moments into V. Few inputs say little of how they belong together: the fewer, the more each weight stays what it was. */
static void factor(rounded_matrix *m)
{
    const size_t n = m->columns;
    double mean = 0.0;
    for (size_t i = 0; i < n; ++i)
        mean += m->moments[i * n + i] / (double)n;
    const double ridge = mean > 0.0 ? mean * (0.01 + 0.1 * (double)n / (double)m->inputs) : 1.0;
    for (size_t i = 0; i < n; ++i)
        m->moments[i * n + i] += ridge;
    cholesky_upper(m->moments, n, BLOCK);
}

round_for_inputs_result round_for_inputs(rounded_matrix *m)
{
    const size_t n = m->columns, count = m->rows * n, scales = m->rows * numbers_of(m);
    double *const work = malloc((4 * count + n * n + m->rows * GROUP) * sizeof *work);
    unsigned char *const bytes = calloc(1, count / 2 + scales * sizeof(uint16_t) + 1);
    uint16_t *const own_scales = malloc((scales + 1) * sizeof *own_scales);
    round_for_inputs_result result = ROUND_FOR_INPUTS_NO_MEMORY;
    if (work && bytes && own_scales) {
        double *const off = work + 2 * count, *const products = off + count, *const moments = products + count;
        const rounding nearest = {work, m->halves, m->scales}, own = {work + count, bytes, own_scales};
        m->power = squares(m, m->weights, products);
        memcpy(moments, m->moments, n * n * sizeof *moments);
        result = ROUND_FOR_INPUTS_TOO_LARGE;
        if (round_to_nearest(m, &nearest)) {
            m->error = m->nearest_error = error_of(m, &nearest, off, products);
            factor(m);
            const double *kept = nearest.values;
            if (round_columns(m, &own, off, moments + n * n)) {
                memcpy(m->moments, moments, n * n * sizeof *moments);
                const double error = error_of(m, &own, off, products);
                if (error < m->error) {
                    m->error = error, kept = own.values;
                    memcpy(m->halves, own.halves, count / 2);
                    memcpy(m->scales, own.scales, scales * sizeof *own.scales);
                }
            }
            memcpy(m->weights, kept, count * sizeof *kept);
            result = ROUND_FOR_INPUTS_DONE;
        }
    }
    free(work);
    free(bytes);
    free(own_scales);
    return result;
}
