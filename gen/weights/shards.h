/* A checkpoint: the tensors of one safetensors file, or of the several that an index lists. */
#ifndef LOOKUPC_WEIGHTS_SHARDS_H
#define LOOKUPC_WEIGHTS_SHARDS_H

#include "gen/weights/safetensors.h"

typedef struct shards shards;

/* Opens a checkpoint: a safetensors file; an index, whose name ends with .json and whose "weight_map" says which file beside it holds a
   tensor; or a folder that holds model.safetensors.index.json or model.safetensors. Returns NULL with one line that starts with a path: as
   safetensors_open for every file, and for an index that is not one, names files elsewhere, or does not name exactly the tensors of its
   files. */
shards *shards_open(const char *path, char *error, size_t error_size);

/* NULL is allowed. */
void shards_close(shards *checkpoint);

/* The files, index from 0. */
size_t shards_count(const shards *checkpoint);
const safetensors *shards_at(const shards *checkpoint, size_t index);

/* The tensor `name` of shape[rank], and in *file where it is. Returns NULL as safetensors_expect does. */
const safetensors_tensor *shards_expect(const shards *checkpoint, const char *name, const int64_t *shape, int rank,
                                        const safetensors **file, char *error, size_t error_size);

#endif
