/* What this core can do at most: the speeds that a share of the limit is computed from. */
#ifndef LOOKUPC_LIMITS_H
#define LOOKUPC_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

/* Tables of `table` bytes with rows of `row` bytes; `name` is that of the limit of reading such rows. */
typedef struct limits_rows {
    const char *name;
    size_t row, table;
} limits_rows;

/* Sizes of the caches in bytes, and the tables whose rows are read. */
typedef struct limits_sizes {
    size_t l1d, l2, l3;
    const limits_rows *rows; /* [row_kinds] */
    size_t row_kinds;
} limits_sizes;

enum { LIMITS_OF_CORE = 5 };

/* One limit: a name with its unit, such as "l2_gbytes" (10^9 bytes a second) or "fma_gflops" (10^9 operations a second, an FMA is two). */
typedef struct limit {
    const char *name;
    double rate;
} limit;

/* Measures fma_gflops, l1_gbytes, l2_gbytes, l3_gbytes and memory_gbytes, in this order, and then reading random rows of each kind, with
   the widest vectors that this CPU runs: the best of interleaved rounds, in CPU time of this thread, about 0.9 s each, 0.6 s with two
   repetitions and 0.06 s with one. Fills found[LIMITS_OF_CORE + row_kinds]. Returns false when there is no memory. */
bool limits_measure(const limits_sizes *sizes, size_t repetitions, limit *found);

/* Reads `bytes` bytes, rounded down to a multiple of 2048, with the widest vectors of this CPU, in four streams side by side, to which
   memory gives more than to one. */
void limits_read(const void *memory, size_t bytes);

#endif
