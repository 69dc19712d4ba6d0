/* The header of a blob. */
#include "gen/weights/blob_header.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void put_little_endian(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; ++i)
        to[i] = (unsigned char)(value >> (8 * i));
}

/* The checksum that <model>_bind computes: see templates/bundle/bind.c. */
static uint64_t checksum(const unsigned char *bytes, size_t size)
{
    uint64_t state = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        state = (state ^ word) * 0x00000100000001b3u;
        state ^= state >> 32;
    }
    return state;
}

void blob_header_write(const blob_header *header, unsigned char *blob, size_t blob_bytes)
{
    memcpy(blob, header->magic, 8);
    put_little_endian(blob + 8, header->format, 4);
    put_little_endian(blob + 12, header->bytes, 4);
    for (int i = 0; i < 16; ++i) {
        const char pair[3] = {header->digest[2 * i], header->digest[2 * i + 1], 0};
        blob[16 + i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    put_little_endian(blob + 32, blob_bytes, 8);
    put_little_endian(blob + 40, checksum(blob + header->bytes, blob_bytes - header->bytes), 8);
}
