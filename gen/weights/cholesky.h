/* The factor of a symmetric, positive definite matrix in float64. */
#ifndef LOOKUPC_WEIGHTS_CHOLESKY_H
#define LOOKUPC_WEIGHTS_CHOLESKY_H

#include <stddef.h>

/* Turns the upper half of A[k][k] into V V^T = A, V upper triangular, `block` columns at a time. What is below the diagonal is as A's. */
void cholesky_upper(double *a, size_t k, size_t block);

#endif
