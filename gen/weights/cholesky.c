/* The factor of a symmetric, positive definite matrix in float64; see cholesky.h. */
#include "gen/weights/cholesky.h"

#include "gen/weights/matmul.h"

#include <math.h>

void cholesky_upper(double *a, size_t k, size_t block)
{
    for (size_t end = k, first; end > 0; end = first) {
        first = end > block ? end - block : 0;
        if (end < k)
            matmul_add(-1.0, (matmul_sizes){end, end - first, k - end}, (matmul_matrix){a + end, k, 1},
                       (matmul_matrix){a + first * k + end, 1, k}, a + first, k);
        for (size_t j = end; j-- > first;)
            for (size_t i = j + 1; i-- > 0;) {
                double sum = a[i * k + j];
                for (size_t l = j + 1; l < end; ++l)
                    sum -= a[i * k + l] * a[j * k + l];
                a[i * k + j] = i == j ? sqrt(sum) : sum / a[j * k + j];
            }
    }
}
