/* Memory of the baselines. */
#ifndef LOOKUPC_BASELINE_MEMORY_H
#define LOOKUPC_BASELINE_MEMORY_H

#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"

#include <stdbool.h>

/* Zeros, each page of them written: pages that nobody wrote are all the kernel's one page of zeros, which stays in L1, and a library that
   reads them looks up to three times as fast as it is. All memory of a baseline comes from here. large: in large pages, for munmap;
   else for free. NULL when there is none. */
static inline void *baseline_memory(size_t bytes, bool large)
{
    if (!large) {
        return aligned_memory(bytes);
    }
    void *memory = memory_of_large_pages(bytes);
    if (memory) {
        memset(memory, 0, bytes);
    }
    return memory;
}

#endif
