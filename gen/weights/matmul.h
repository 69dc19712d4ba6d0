/* Matrix products in float64 that give the same bytes on every machine. */
#ifndef LOOKUPC_WEIGHTS_MATMUL_H
#define LOOKUPC_WEIGHTS_MATMUL_H

#include <stddef.h>

/* A matrix to be read: element (i, j) is data[i * row + j * column]. */
typedef struct {
    const double *data;
    size_t row, column;
} matmul_matrix;

typedef struct {
    size_t m, n, k;
} matmul_sizes;

/* c[m][n], rows ldc apart, += sign * a[m][k] b[k][n], sign 1.0 or -1.0. Every element adds its k terms one after the other, each product
   and each sum rounded once (no FMA), whatever the instruction set: the result is that of three plain loops. c must not overlap a or b.
   Cannot fail. One call at a time, in one thread: blocks of a and b are copied to memory that all calls share. */
void matmul_add(double sign, matmul_sizes sizes, matmul_matrix a, matmul_matrix b, double *c, size_t ldc);

/* The same with vectors of at most `lanes` elements, at least 2: tests compare what CPUs with less would compute. */
void matmul_add_narrow(size_t lanes, double sign, matmul_sizes sizes, matmul_matrix a, matmul_matrix b, double *c, size_t ldc);

#endif
