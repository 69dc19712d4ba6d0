/* A compiled variant of a model: its shared library, the functions in it, and the weights that it is bound to. */
#ifndef LOOKUPC_HARNESS_VARIANT_H
#define LOOKUPC_HARNESS_VARIANT_H

#include "gen/host/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The functions of emitted code; `weights` is a pointer to the model's own struct <m>_weights. */
typedef int variant_bind(const void *blob, size_t bytes, void *weights);
typedef void variant_ffn(const void *weights, const float *x, float *y, size_t tokens, void *scratch);
typedef void variant_project(const void *weights, const float *x, size_t tokens, uint16_t *code, float *score, void *scratch);
typedef void variant_gather(const void *weights, const uint16_t *code, const float *score, float *y, size_t tokens, void *scratch);

/* What a job says of a variant; the strings belong to the job. */
typedef struct {
    const char *library;                 /* path of the shared library */
    const char *bind, *project, *gather; /* names of the functions */
    const char *ffn;                     /* that run calls, bench times and verify checks */
    const char *any_ffn;                 /* the variant's for any number of tokens, in threads where the library has them */
    const char *public_ffn;              /* the model's */
    size_t tile, chunk;                  /* tokens */
    size_t whole;                        /* tokens of a chunk, up to which it gathers whole rows; 0: none do */
    size_t scratch_bytes;                /* of a call of any number of tokens */
    size_t scratch_bytes_one;            /* of one token, to any_ffn or public_ffn */
    size_t weights_struct_bytes;
    size_t d, d_out, h, tau, neighbours;
} variant_description;

typedef struct {
    void *library;
    variant_bind *bind;
    variant_ffn *ffn, *any_ffn, *public_ffn;
    variant_project *project;
    variant_gather *gather;
} variant_functions;

/* Loads the library and finds the functions. Fails with one line that starts with the library's path. */
bool variant_open(variant_functions *functions, const variant_description *description, char *error, size_t error_size);

void variant_close(variant_functions *functions);

/* A variant that can be called: weights is what bind filled, scratch has the size that it wants. */
typedef struct {
    variant_functions functions;
    void *weights, *scratch;
} variant_bound;

/* Opens a variant and binds it to the blob, a mapped file which must outlive it; blob_path is for messages. Fails with one line that
   starts with a path. */
bool variant_load(variant_bound *variant, const variant_description *description, const char *blob_path, const files_mapping *blob,
                  char *error, size_t error_size);

/* All zeros are allowed. */
void variant_unload(variant_bound *variant);

/* The slots of a token, one for each row that it takes: [h][neighbours]. Codes and scores of tokens in a row are laid out as
   [ceil(tokens / tile)][slots][tile]: the number of their places, and the place of a token's slot. */
size_t variant_slots(const variant_description *description);
size_t variant_places(const variant_description *description, size_t tokens);
size_t variant_place(const variant_description *description, size_t token, size_t slot);

#ifdef __cplusplus
}
#endif

#endif
