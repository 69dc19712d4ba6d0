/* Memory with forbidden pages on both sides. */
#include "guard.h"

#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

bool guard_create(guarded *memory, size_t bytes, size_t alignment, guard_place place)
{
    const size_t page = page_size(), offset = place == GUARD_UNALIGNED ? 4 : 0;
    const size_t page_bytes = round_up(bytes + offset, page);
    unsigned char *all = mmap(NULL, page_bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *memory = (guarded){0};
    if (all == MAP_FAILED)
        return false;
    *memory = (guarded){.bytes = bytes, .pages = all + page, .page_bytes = page_bytes};
    if (page_bytes > 0 && mprotect(memory->pages, page_bytes, PROT_READ | PROT_WRITE) != 0) {
        guard_free(memory);
        return false;
    }
    memset(memory->pages, 0xFF, page_bytes);
    memory->data = memory->pages + (place == GUARD_END ? (page_bytes - bytes) / alignment * alignment : offset);
    return true;
}

void guard_free(guarded *memory)
{
    if (memory->pages)
        munmap(memory->pages - page_size(), memory->page_bytes + 2 * page_size());
    *memory = (guarded){0};
}

bool guard_intact(const guarded *memory)
{
    const unsigned char *end = memory->pages + memory->page_bytes;
    for (const unsigned char *at = memory->pages; at < memory->data; ++at)
        if (*at != 0xFF)
            return false;
    for (const unsigned char *at = memory->data + memory->bytes; at < end; ++at)
        if (*at != 0xFF)
            return false;
    return true;
}

void guard_read_only(const guarded *memory)
{
    if (memory->page_bytes > 0)
        mprotect(memory->pages, memory->page_bytes, PROT_READ);
}
