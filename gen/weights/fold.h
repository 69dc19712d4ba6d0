/* Exact folding in float64: the algebra done once when weights are packed. */
#ifndef LOOKUPC_WEIGHTS_FOLD_H
#define LOOKUPC_WEIGHTS_FOLD_H

#include <stddef.h>

enum { FOLD_MAX_DIMS = 6 };

/* A walk over a tensor: `count` steps in each dimension, of `from` elements in the one array and `to` in the other. */
typedef struct {
    size_t count, from, to;
} fold_dim;

/* Transposes the size x size matrices that follow each other in data[count]. */
void fold_transpose_blocks(double *data, size_t count, size_t size);

/* Multiplies each size x size matrix [out][in] of data[count] by the unnormalised Hadamard matrix from the left: W' = H W. */
void fold_hadamard(double *data, size_t count, size_t size);

/* data[walk from] *= factor, or *= by[walk to] if by is not NULL. */
void fold_scale(double *data, const fold_dim *dims, int rank, double factor, const double *by);

/* What a projection is, for fold_add_projection; block 0 is dense. */
typedef struct {
    size_t d, bits, block, padded, repeats;
    double decay;
} fold_projection;

/* z[bits] += the projection of x[d] without bias; weights as in the checkpoint, blocks [out][in].
   Returns 0, or -1 without memory. */
int fold_add_projection(const fold_projection *shape, const double *weights, const double *x, double *z);

/* r[bits][d] <- the matrix of a BH4 projection, decay with it, without the share of x that bypasses it; weights as above. Returns 0, or -1
   without memory. */
int fold_multiply_out(const fold_projection *shape, const double *weights, double *r);

#endif
