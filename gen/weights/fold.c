/* Exact folding in float64; see fold.h. */
#include "gen/weights/fold.h"

#include "gen/weights/matmul.h"

#include <stdlib.h>
#include <string.h>

void fold_transpose_blocks(double *data, size_t count, size_t size)
{
    for (size_t start = 0; start < count; start += size * size)
        for (size_t i = 0; i < size; ++i)
            for (size_t j = 0; j < i; ++j) {
                double *a = data + start + i * size + j, *b = data + start + j * size + i;
                const double kept = *a;
                *a = *b;
                *b = kept;
            }
}

/* The unnormalised Hadamard transform of `size` rows of `width` elements, natural order. */
static void hadamard(double *rows, size_t size, size_t width)
{
    for (size_t half = 1; half < size; half *= 2)
        for (size_t row = 0; row < size; ++row) {
            if (row & half)
                continue;
            double *low = rows + row * width, *high = low + half * width;
            for (size_t i = 0; i < width; ++i) {
                const double sum = low[i] + high[i], difference = low[i] - high[i];
                low[i] = sum;
                high[i] = difference;
            }
        }
}

void fold_hadamard(double *data, size_t count, size_t size)
{
    for (size_t start = 0; start < count; start += size * size)
        hadamard(data + start, size, size);
}

void fold_scale(double *data, const fold_dim *dims, int rank, double factor, const double *by)
{
    if (rank == 0) {
        *data *= by ? *by : factor;
        return;
    }
    for (size_t i = 0; i < dims->count; ++i)
        fold_scale(data + i * dims->from, dims + 1, rank - 1, factor, by ? by + i * dims->to : NULL);
}

int fold_add_projection(const fold_projection *shape, const double *weights, const double *x, double *z)
{
    if (shape->block == 0) {
        for (size_t o = 0; o < shape->bits; ++o)
            for (size_t i = 0; i < shape->d; ++i)
                z[o] += weights[o * shape->d + i] * x[i];
        return 0;
    }
    const size_t N = shape->padded, b = shape->block;
    double *y = calloc(2 * N, sizeof *y);
    if (!y)
        return -1;
    double *product = y + N;
    for (size_t repeat = 0; repeat < shape->repeats; ++repeat) {
        memset(y, 0, N * sizeof *y);
        memcpy(y, x, shape->d * sizeof *y);
        for (size_t stage = 0; stage < 4; ++stage, weights += N * b) {
            for (size_t o = 0; o < N; ++o) {
                product[o] = 0;
                for (size_t i = 0; i < b; ++i)
                    product[o] += weights[o * b + i] * y[o / b * b + i];
            }
            hadamard(product, N, 1);
            memcpy(y, product, N * sizeof *y);
        }
        for (size_t i = 0; i < N && repeat * N + i < shape->bits; ++i)
            z[repeat * N + i] += shape->decay * y[i] + (i < shape->d ? (1 - shape->decay) * x[i] : 0);
    }
    free(y);
    return 0;
}

/* y[rows][N] <- a stage of each row: H blockdiag(weights) y.  product: as large, overwritten */
static void run_stage(const fold_projection *shape, const double *weights, size_t rows, double *y, double *product)
{
    const size_t N = shape->padded, b = shape->block;
    memset(product, 0, rows * N * sizeof *product);
    for (size_t first = 0; first < N; first += b)
        matmul_add(1.0, (matmul_sizes){rows, b, b}, (matmul_matrix){y + first, N, 1}, (matmul_matrix){weights + first * b, 1, b},
                   product + first, N);
    for (size_t row = 0; row < rows; ++row)
        hadamard(product + row * N, N, 1);
    memcpy(y, product, rows * N * sizeof *y);
}

int fold_multiply_out(const fold_projection *shape, const double *weights, double *r)
{
    enum { TOGETHER = 64 }; /* unit vectors */
    const size_t N = shape->padded, d = shape->d, stage_size = N * shape->block;
    double *y = malloc(2 * TOGETHER * N * sizeof *y);
    if (!y)
        return -1;
    for (size_t repeat = 0; repeat < shape->repeats; ++repeat)
        for (size_t first = 0, rows; first < d; first += rows) {
            rows = d - first < TOGETHER ? d - first : TOGETHER;
            memset(y, 0, rows * N * sizeof *y);
            for (size_t row = 0; row < rows; ++row)
                y[row * N + first + row] = shape->decay;
            for (size_t stage = 0; stage < 4; ++stage)
                run_stage(shape, weights + (4 * repeat + stage) * stage_size, rows, y, y + TOGETHER * N);
            for (size_t o = repeat * N; o < (repeat + 1) * N && o < shape->bits; ++o)
                for (size_t row = 0; row < rows; ++row)
                    r[o * d + first + row] = y[row * N + o % N];
        }
    free(y);
    return 0;
}
