/* The blocks of values that GGUF files hold in 2 to 8 bits, and what they stand for. */
#ifndef LOOKUPC_WEIGHTS_GGUF_BLOCKS_H
#define LOOKUPC_WEIGHTS_GGUF_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

enum { GGUF_MOST_ELEMENTS = 256, GGUF_LARGEST_BLOCK = 210 }; /* elements and bytes of a block */

/* A type of blocks. */
typedef struct gguf_blocks {
    uint32_t number; /* in files */
    const char *name;
    size_t elements, bytes;
    void (*decode)(const unsigned char *block, float *out); /* out[elements], each rounded once */
} gguf_blocks;

/* units[32] <- the integers of a block of Q4_0, from -8 to 7, of Q4_1, from 0 to 15, or of Q8_0, from -128 to 127; the bits of its scale
   and, of Q4_1, its minimum. */
void gguf_blocks_units(const gguf_blocks *blocks, const unsigned char *block, double *units, uint16_t *scale, uint16_t *minimum);

enum { GGUF_Q4_0 = 2, GGUF_Q4_1 = 3, GGUF_Q8_0 = 8 };

/* The type of that number, or NULL. */
const gguf_blocks *gguf_blocks_of(uint32_t number);

#endif
