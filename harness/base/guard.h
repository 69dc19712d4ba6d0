/* Memory with guard pages on both sides, to catch whoever reads or writes beyond it. */
#ifndef LOOKUPC_HARNESS_GUARD_H
#define LOOKUPC_HARNESS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Where the memory lies: its last byte right before a guard page, as far as the alignment permits; its first byte right after one;
   or the alignment plus 4 bytes after one, so that it is aligned for a float and no more. */
typedef enum { GUARD_END, GUARD_START, GUARD_UNALIGNED } guard_place;

typedef struct {
    unsigned char *data; /* [bytes] */
    size_t bytes;
    unsigned char *pages; /* the pages between the guard pages */
    size_t page_bytes;
    bool read_only;
} guarded;

/* Makes memory whose every byte, and every byte around it on its pages, is 0xFF (a float NaN). False when there is not enough. */
bool guard_create(guarded *memory, size_t bytes, size_t alignment, guard_place place);

/* Keeps some of it for what is made next. Memory of all zeros is allowed. */
void guard_free(guarded *memory);

/* Nobody wrote to the bytes around the memory. */
bool guard_intact(const guarded *memory);

/* From here on a write kills the process. */
void guard_read_only(guarded *memory);

#endif
