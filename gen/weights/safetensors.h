/* Tensors in the safetensors format: a reader that trusts nothing in the file, and a writer that streams. */
#ifndef LOOKUPC_WEIGHTS_SAFETENSORS_H
#define LOOKUPC_WEIGHTS_SAFETENSORS_H

#include "gen/weights/nearest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SAFETENSORS_MAX_RANK = 8,
    SAFETENSORS_MAX_HEADER = 100000000, /* bytes; the cap of the format's own library */
};

/* The element types that can be read; I4 is what U8 stands for, two integers in a byte. A checkpoint may hold others beside the weights:
   they are refused when asked for. */
typedef enum { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64, DTYPE_I8, DTYPE_I4, DTYPE_UNREADABLE } safetensors_dtype;

/* A type of values in blocks (gen/weights/gguf_blocks.h). */
typedef struct gguf_blocks gguf_blocks;

/* One tensor of an open file; lives as long as the file stays open. */
typedef struct {
    const char *name; /* UTF-8 */
    safetensors_dtype dtype;
    const char *dtype_name; /* as the file spells it: "F32", "I64", ... */
    int rank;               /* 0 ... SAFETENSORS_MAX_RANK */
    int64_t shape[SAFETENSORS_MAX_RANK];
    size_t at;    /* in the file, of its first byte */
    size_t count; /* elements: the product of shape */
    size_t bytes;
    bool halves;               /* it stands in the file as I4, and counts as I8, or in groups as F32 */
    size_t scales_at;          /* of I8, groups and FP8: in the file, of the scales of its rows, groups or blocks, one behind the other */
    safetensors_dtype scales;  /* of FP8: F32 or BF16; of groups: F16; else F32 */
    bool fp8;                  /* it stands in the file as F8_E4M3, and counts as F32 */
    const gguf_blocks *blocks; /* what a GGUF file has instead of F32, or would have for such groups, or NULL */
} safetensors_tensor;

typedef struct safetensors safetensors;

/* What the name of a tensor's scales ends with. A tensor NAME in I8 beside NAME_scale in F32 with an element for each row, which is the
   last dimension, stands for its integers times these scales. The scales are no tensor of the file then; I8 without them cannot be read. */
#define SAFETENSORS_SCALE "_scale"

/* The same of integers from -8 to 7, two in a byte: a tensor NAME in U8 beside NAME_scale_i4, whose rows have so many bytes. Of a byte the
   first integer is in the low four bits, in two's complement. It counts as I8 with rows twice as long. */
#define SAFETENSORS_HALF_SCALE "_scale_i4"

/* The same of groups of 32 values of a row, of which the last one may have fewer, as --type i4, u4 and q8 have them: a tensor NAME in U8
   beside NAME_groups_i4 in F16, [rows][groups], stands for integers from -8 to 7 times the scales of their groups; beside NAME_groups_u4,
   [rows][groups][2], for integers from 0 to 15 times the first of both plus the second; one in I8 beside NAME_groups_q8, [rows][groups],
   for its integers times the scales. Each value is rounded to float32. It counts as F32, in U8 with rows twice as long, and has the blocks
   Q4_0, Q4_1 or Q8_0. */
#define SAFETENSORS_GROUPS_I4 "_groups_i4"
#define SAFETENSORS_GROUPS_U4 "_groups_u4"
#define SAFETENSORS_GROUPS_Q8 "_groups_q8"
enum { SAFETENSORS_GROUP = 32 };

/* The same of FP8 in blocks, as DeepSeek V3 and Qwen have it. A matrix NAME [r][c] in F8_E4M3 beside NAME_scale_inv [r / 128][c / 128],
   rounded up, in F32 or BF16, stands for its numbers times the scales of their blocks of 128 x 128, each product rounded to float32. It
   counts as F32. */
#define SAFETENSORS_BLOCK_SCALE "_scale_inv"
enum { SAFETENSORS_BLOCK = 128 };

/* Opens a file and checks all of its header. Returns NULL with one line that starts with the path for a file that cannot be read or breaks
   a rule of the format: header length, JSON, duplicate keys, dtype, shape, offsets, overlaps, holes, bytes after the last tensor; of a file
   in another known format it says which, and how to convert it; scales of a tensor in I8 that are not as many as its rows, or in FP8 not as
   many as its blocks. Values are read when they are asked for. Source: the "Format" section of the safetensors README. A GGUF file
   (gen/weights/gguf.h) is read as if it were one. */
safetensors *safetensors_open(const char *path, char *error, size_t error_size);

/* NULL is allowed. */
void safetensors_close(safetensors *file);

const char *safetensors_path(const safetensors *file);

/* The number of tensors, and one of them; index from 0 in the order of names (strcmp). */
size_t safetensors_count(const safetensors *file);
const safetensors_tensor *safetensors_at(const safetensors *file, size_t index);

/* The tensor of that name, or NULL. */
const safetensors_tensor *safetensors_find(const safetensors *file, const char *name);

/* Whether the file has scales of that name. */
bool safetensors_has_scales(const safetensors *file, const char *name);

/* Offers all names of the file to a search for what was meant (gen/weights/nearest.h). */
void safetensors_offer(const safetensors *file, nearest *search);

/* The tensor named prefix and name, of shape[rank] (NULL for any shape). Returns NULL with one line that starts with the path and says what
   the file has instead. */
const safetensors_tensor *safetensors_expect(const safetensors *file, const char *prefix, const char *name, const int64_t *shape, int rank,
                                             char *error, size_t error_size);

/* Converts elements first ... first + count - 1 of a tensor, in row-major order, to out[count]; exact. Fails with one line that starts with
   the path for a NaN or infinity (naming tensor and flat index), a dtype that cannot be read, a range outside the tensor, or a file that
   was cut off meanwhile; out is then undefined. */
bool safetensors_read(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, double *out, char *error,
                      size_t error_size);

/* The bytes of elements first ... first + count - 1 as they are: out[count * bytes / count of the tensor]; of I8 without scales. Fails as
   safetensors_read does, but values are not looked at. */
bool safetensors_read_bytes(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, void *out, char *error,
                            size_t error_size);

/* What a GGUF file calls the blocks of a tensor, or would call its groups; NULL: it has none. */
const char *safetensors_blocks_name(const safetensors_tensor *tensor);

/* out[] <- the blocks of elements first ... first + count - 1, whole ones, or whole rows of groups, of a tensor in blocks, as a GGUF file
   has them: of a group with fewer elements the others are zeros. */
bool safetensors_read_blocks(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, unsigned char *out,
                             char *error, size_t error_size);

/* All elements of a tensor, from malloc; NULL as safetensors_read fails, or when memory is short. */
double *safetensors_load(const safetensors *file, const safetensors_tensor *tensor, char *error, size_t error_size);

/* The dtype that the format calls `name`; DTYPE_UNREADABLE for any other. */
safetensors_dtype safetensors_dtype_named(const char *name);

/* Bytes of an element of a dtype that can be read. */
size_t safetensors_width(safetensors_dtype dtype);

/* The value of an IEEE 754 binary16, little-endian. */
double safetensors_from_f16(const unsigned char *bytes);

/* What a writer needs to know of a tensor beforehand. */
typedef struct {
    const char *name; /* UTF-8 */
    int rank;
    int64_t shape[SAFETENSORS_MAX_RANK];
    safetensors_dtype dtype; /* one that can be read; of I4 the last dimension is even */
} safetensors_description;

typedef struct safetensors_writer safetensors_writer;

/* Starts a file with tensors[count] in the given order; nothing of descriptions is kept. The same descriptions give the same bytes.
   Returns NULL with one line that starts with the path. */
safetensors_writer *safetensors_create(const char *path, const safetensors_description *tensors, size_t count, char *error,
                                       size_t error_size);

/* Appends data[bytes], the next values in row-major order, tensor after tensor, in their dtypes; a call may end inside a tensor or span
   several. Values are not checked. After a failure (one line that starts with the path) only safetensors_abandon may follow. */
bool safetensors_append(safetensors_writer *writer, const void *data, size_t bytes, char *error, size_t error_size);

/* The bytes that are still to come. */
size_t safetensors_missing(const safetensors_writer *writer);

/* Flushes to the disk and gives the file its name. Frees the writer, whether it succeeds or not. Fails with one line that starts with the
   path, also when values are missing; then no new file exists and what stood at path before stays. */
bool safetensors_finish(safetensors_writer *writer, char *error, size_t error_size);

/* Removes what was written and frees the writer; NULL is allowed. */
void safetensors_abandon(safetensors_writer *writer);

#endif
