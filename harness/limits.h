/* What this core can do at most: the speeds that a share of the limit is computed from. */
#ifndef LOOKUPC_LIMITS_H
#define LOOKUPC_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes in bytes: the caches, and a model's tables with their rows. */
typedef struct limits_sizes {
    size_t l1d, l2, l3, row, table;
} limits_sizes;

enum { LIMITS_COUNT = 6 };

/* One limit: a name with its unit, such as "l2_gbytes" (10^9 bytes a second) or "fma_gflops" (10^9 operations a second, an FMA is two). */
typedef struct limit {
    const char *name;
    double rate;
} limit;

/* Measures fma_gflops, l1_gbytes, l2_gbytes, l3_gbytes, memory_gbytes and random_rows_gbytes, in this order, with the widest vectors that
   this CPU runs: the best of interleaved rounds, in CPU time of this thread, about 4 s. Returns false when there is no memory. */
bool limits_measure(const limits_sizes *sizes, limit found[LIMITS_COUNT]);

#ifdef __cplusplus
}
#endif

#endif
