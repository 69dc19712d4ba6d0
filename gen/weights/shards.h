/* Checkpoints: the tensors of one safetensors file, or of the several that an index lists, read and written. */
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

/* Of the checkpoint in messages: its index, or its only file. */
const char *shards_path(const shards *checkpoint);

/* The files, index from 0. */
size_t shards_count(const shards *checkpoint);
const safetensors *shards_at(const shards *checkpoint, size_t index);

/* The tensor prefix + name of shape[rank]; NULL: no prefix, and any shape. */
typedef struct {
    const char *prefix, *name;
    const int64_t *shape;
    int rank;
} shards_wanted;

/* That tensor, and in *file where it is. Returns NULL as safetensors_expect does. */
const safetensors_tensor *shards_expect(const shards *checkpoint, shards_wanted wanted, const safetensors **file, char *error,
                                        size_t error_size);

/* Whether there is a tensor of that name. */
bool shards_have(const shards *checkpoint, const char *name);

/* A checkpoint that is being written: all of its files or none. */
typedef struct shards_writer shards_writer;

/* Starts a checkpoint, with an index of that text at that path unless it is NULL. Returns NULL with one line that starts with the path. */
shards_writer *shards_create(const char *index, const char *text, char *error, size_t error_size);

/* Starts one more file, as safetensors_create does; at most SHARDS_MOST of them, all before the first value. */
enum { SHARDS_MOST = 4096 };
bool shards_add(shards_writer *writer, const char *path, const safetensors_description *tensors, size_t count, char *error,
                size_t error_size);

/* Appends data[bytes] of one tensor to the first file that is not full, as safetensors_append does. */
bool shards_append(shards_writer *writer, const void *data, size_t bytes, char *error, size_t error_size);

/* Gives all files their names, the index last. Frees the writer, whether it succeeds or not; fails as safetensors_finish does. */
bool shards_finish(shards_writer *writer, char *error, size_t error_size);

/* Removes what was written and frees the writer; NULL is allowed. */
void shards_abandon(shards_writer *writer);

#endif
