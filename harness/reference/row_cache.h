/* Rows of tables that were read before: for a reference that looks up many tokens, most of its time is reading and rounding them. */
#ifndef LOOKUPC_HARNESS_REFERENCE_ROW_CACHE_H
#define LOOKUPC_HARNESS_REFERENCE_ROW_CACHE_H

#include "harness/reference/lookup.h"

typedef struct {
    reference_weights source;
    size_t codes, d_out, slots; /* rows of a table, values of a row, rows that are kept */
    size_t *kept;               /* [slots] which row of all tables a slot holds, from 1 on; 0: none */
    double *scale, *rows;       /* [slots], [slots][d_out] */
} row_cache;

/* Makes `weights` read their rows and scales through the cache, which must outlive them and keeps up to 64 MiB. False: memory is short. */
bool row_cache_open(row_cache *cache, const reference_model *model, reference_weights *weights);
void row_cache_close(row_cache *cache);

#endif
