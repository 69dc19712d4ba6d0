/* One compiled variant of the emitted FFN, loaded and bound, and the calls of it that are timed. */
#ifndef LOOKUPC_MEASURE_VARIANT_H
#define LOOKUPC_MEASURE_VARIANT_H

#include "harness/base/variant.h"

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
    variant_bound bound;
    bool shares; /* weights and scratch are another's */
    /* for timing the stages alone, of this pool: its codes and scores [ceil(tokens / tile)][slots][tile], the same by token
       [tokens][slots], of one chunk [chunk / tile][slots][tile] */
    const measure_pool *pool;
    uint16_t *code, *token_code, *chunk_code;
    float *score, *token_score, *chunk_score;
} measure_variant;

/* Loads the library and binds the blob (see variant_load). job and blob must outlive it. Returns false with one line in error that starts
   with a path. */
bool measure_variant_open(measure_variant *variant, const variant_description *job, const char *blob_path, const files_mapping *blob,
                          char *error, size_t error_size);
void measure_variant_close(measure_variant *variant);

/* Loads the library of another schedule of the same model, which takes weights and scratch of `first`: to read a large blob again would
   take longer than the timing, and at the same place memory is the same for both. first must outlive it and have scratch that is enough for
   it. Fails as above. */
bool measure_variant_open_beside(measure_variant *variant, const variant_description *job, const measure_variant *first, char *error,
                                 size_t error_size);

/* Makes it possible to time project and gather alone: projects the whole pool, which must outlive the variant. Fails as above. */
bool measure_variant_take_apart(measure_variant *variant, const measure_pool *pool, char *error, size_t error_size);

/* One call for batch tokens at *position of a pool, then moves *position on, back to 0 near the end. y [batch][d_out].
 *position starts at 0 and belongs to one function, pool and batch, which is at most half of the pool. */
void measure_variant_ffn(const measure_variant *variant, const measure_pool *pool, size_t batch, size_t *position, float *y);

/* The same for one stage of a variant that was taken apart, with its pool.
   The stages go from chunk to chunk as the emitted driver does. project writes the codes of every chunk to the same place, as it does
   there; gather reads those of the pool. For a batch below one tile gather's time includes laying its codes out: about 0.6 ns a
   token and slot. Reading them from a tile kept for each call would cost more, for it would be cold. */
void measure_variant_project(const measure_variant *variant, size_t batch, size_t *position, float *y);
void measure_variant_gather(const measure_variant *variant, size_t batch, size_t *position, float *y);

#ifdef __cplusplus
}
#endif

#endif
