/* One compiled variant of the emitted FFN, loaded and bound, and the calls of it that are timed. */
#ifndef LOOKUPC_MEASURE_VARIANT_H
#define LOOKUPC_MEASURE_VARIANT_H

#include "variant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tokens that calls walk through, so that a call does not get tokens it has just seen: x [tokens][d]. */
typedef struct measure_pool {
    size_t tokens, d;
    const float *x;
} measure_pool;

typedef struct measure_variant {
    const variant_description *job;
    const measure_pool *pool;
    variant_bound bound;
    /* of the whole pool [ceil(tokens / tile)][slots][tile], the same by token [tokens][slots], of one chunk [chunk / tile][slots][tile] */
    uint16_t *code, *token_code, *chunk_code;
    float *score, *token_score, *chunk_score;
} measure_variant;

/* Loads the library, binds the blob (see variant_load) and projects the whole pool, so that gather can be timed alone. job, blob and pool
   must outlive it. Returns false with one line in error that starts with a path. */
bool measure_variant_open(measure_variant *variant, const variant_description *job, const char *blob_path, const files_mapping *blob,
                          const measure_pool *pool, char *error, size_t error_size);
void measure_variant_close(measure_variant *variant);

/* One call for batch tokens at *position of the pool, then moves *position on, back to 0 near the end. y [batch][d_out].
   *position starts at 0 and belongs to one function and one batch, which is at most half of the pool.
   The stages go from chunk to chunk as the emitted driver does. project writes the codes of every chunk to the same place, as it does
   there; gather reads those of measure_variant_open. For a batch below one tile gather's time includes laying its codes out: about 0.6 ns a
   token and slot. Reading them from a tile kept for each call would cost more, for it would be cold. */
void measure_variant_ffn(const measure_variant *variant, size_t batch, size_t *position, float *y);
void measure_variant_project(const measure_variant *variant, size_t batch, size_t *position, float *y);
void measure_variant_gather(const measure_variant *variant, size_t batch, size_t *position, float *y);

#ifdef __cplusplus
}
#endif

#endif
