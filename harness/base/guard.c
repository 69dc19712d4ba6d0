/* Memory with guard pages on both sides. */
#include "harness/base/guard.h"

#include "harness/base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Memory that was freed: asking the system for pages, and its zeroing them, would take longer than most calls between guard pages. */
static struct {
    unsigned char *pages;
    size_t page_bytes;
} spare[16];
enum { SPARES = sizeof spare / sizeof *spare };

/* Pages between guard pages, that can be read and written; NULL when there are not enough. */
static unsigned char *take_pages(size_t page_bytes)
{
    for (size_t i = 0; i < SPARES; ++i) {
        unsigned char *pages = spare[i].pages;
        if (pages && spare[i].page_bytes == page_bytes) {
            spare[i].pages = NULL;
            return pages;
        }
    }
    const size_t page = page_size();
    unsigned char *all = mmap(NULL, page_bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    if (page_bytes == 0 || mprotect(all + page, page_bytes, PROT_READ | PROT_WRITE) == 0)
        return all + page;
    munmap(all, page_bytes + 2 * page);
    return NULL;
}

bool guard_create(guarded *memory, size_t bytes, size_t alignment, guard_place place)
{
    const size_t offset = place == GUARD_UNALIGNED ? 4 : 0, page_bytes = round_up(bytes + offset, page_size());
    unsigned char *pages = take_pages(page_bytes);
    *memory = (guarded){0};
    if (!pages)
        return false;
    memset(pages, 0xFF, page_bytes);
    *memory = (guarded){.bytes = bytes, .pages = pages, .page_bytes = page_bytes};
    memory->data = pages + (place == GUARD_END ? (page_bytes - bytes) / alignment * alignment : offset);
    return true;
}

static void unmap(unsigned char *pages, size_t page_bytes)
{
    if (pages)
        munmap(pages - page_size(), page_bytes + 2 * page_size());
}

/* Where freed pages wait: in the first empty place or, of all in turn, in another's. */
static size_t place_for_spare(void)
{
    static size_t turn;
    for (size_t i = 0; i < SPARES; ++i)
        if (!spare[i].pages)
            return i;
    return turn++ % SPARES;
}

void guard_free(guarded *memory)
{
    if (memory->read_only && mprotect(memory->pages, memory->page_bytes, PROT_READ | PROT_WRITE) != 0) {
        unmap(memory->pages, memory->page_bytes);
    } else if (memory->pages) {
        const size_t i = place_for_spare();
        unmap(spare[i].pages, spare[i].page_bytes);
        spare[i].pages = memory->pages;
        spare[i].page_bytes = memory->page_bytes;
    }
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

void guard_read_only(guarded *memory)
{
    memory->read_only = memory->page_bytes > 0 && mprotect(memory->pages, memory->page_bytes, PROT_READ) == 0;
}
