/* GGUF files, version 2 and 3: metadata and tensors, read by code that trusts nothing in the file. */
#ifndef LOOKUPC_WEIGHTS_GGUF_H
#define LOOKUPC_WEIGHTS_GGUF_H

#include "gen/host/files.h"
#include "gen/weights/safetensors.h"

enum {
    GGUF_MAX_HEADER = 100000000, /* bytes before the data */
    GGUF_MAX_ENTRIES = 65536,    /* of metadata, and of tensors */
    GGUF_MAX_NAME = 900,         /* bytes */
    GGUF_MAX_ELEMENTS = 1 << 24, /* of an array */
    GGUF_MAX_DEPTH = 4,          /* arrays in arrays */
};

/* The type of a value of metadata, as the file numbers them. */
typedef enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
} gguf_type;

/* An entry of metadata. value: as the file has it, checked; a string is its length (u64) and its bytes, an array the type of its elements
   (u32), their number (u64) and the elements. */
typedef struct {
    const char *key;
    gguf_type type;
    const unsigned char *value;
} gguf_entry;

typedef struct {
    unsigned char *header;
    gguf_entry *entries;         /* [entry_count], in the order of keys */
    safetensors_tensor *tensors; /* [count], in the order of names */
    size_t entry_count, count;
} gguf;

/* Whether the file starts as a GGUF file does. */
bool gguf_claims(const files_source *source);

/* Reads and checks all before the data. Fails with one line that starts with the path: version, counts, lengths, types, duplicate keys,
   alignment, shapes, offsets, overlaps, tensors beyond the end. *file is to be closed in any case. The tensors have their usual shape, the
   last dimension first in the file; names are the file's. Those in blocks count as F32. Source: docs/gguf.md of ggml. */
bool gguf_open(const files_source *source, gguf *file, char *error, size_t error_size);

void gguf_close(gguf *file);

/* Bytes of a number of that type; 0 for a string or an array. */
size_t gguf_width(gguf_type type);

/* out[count] <- elements from `first` on of a tensor in blocks. Fails as files_pread does. */
bool gguf_read(const files_source *source, const safetensors_tensor *tensor, size_t first, size_t count, float *out, char *error,
               size_t error_size);

/* out[] <- so many blocks from number `first` on, as the file has them. */
bool gguf_read_blocks(const files_source *source, const safetensors_tensor *tensor, size_t first, size_t count, unsigned char *out,
                      char *error, size_t error_size);

#endif
