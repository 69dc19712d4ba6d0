/* The header of a blob, which <model>_bind checks. */
#ifndef LOOKUPC_WEIGHTS_BLOB_HEADER_H
#define LOOKUPC_WEIGHTS_BLOB_HEADER_H

#include <stddef.h>

typedef struct {
    const char *magic;    /* 8 bytes */
    const char *digest;   /* of the model, hexadecimal, of which 16 bytes count */
    size_t format, bytes; /* version of the blob; size of the header */
} blob_header;

/* Writes the header of blob[blob_bytes], whose other bytes are what they will stay: magic | version u32 | header bytes u32 | 16 bytes of
   model digest | blob bytes u64 | checksum u64 | zero. blob is aligned to 8 bytes and zero where the header will be. */
void blob_header_write(const blob_header *header, unsigned char *blob, size_t blob_bytes);

#endif
