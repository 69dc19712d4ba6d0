/* Sizes, and memory aligned as emitted code wants it. */
#ifndef LOOKUPC_HARNESS_MEMORY_H
#define LOOKUPC_HARNESS_MEMORY_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_ALIGNMENT = 64 }; /* bytes: blob, scratch, code, score */

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* Aligned, touched (all zero) and at least one byte; NULL when there is no memory. Released with free. */
static inline void *aligned_memory(size_t bytes)
{
    const size_t rounded = round_up(bytes + 1, MEMORY_ALIGNMENT);
    void *memory = aligned_alloc(MEMORY_ALIGNMENT, rounded);
    if (memory)
        memset(memory, 0, rounded);
    return memory;
}

#endif
