/* A blob in memory that is fast to look rows up in: huge pages, where the operating system offers them. */
#include "harness/base/blob_memory.h"

#include "harness/base/memory.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t huge_page = (size_t)2 << 20;
static const size_t least_huge = (size_t)4 << 20; /* below, small pages do not matter and the copy is for nothing */

void *memory_of_large_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), length = round_up(bytes + !bytes, page);
    unsigned char *start = mmap(NULL, length + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    const size_t before = round_up((uintptr_t)start, huge_page) - (uintptr_t)start;
    if (before > 0)
        munmap(start, before);
    if (before < huge_page)
        munmap(start + before + length, huge_page - before);
    madvise(start + before, length, MADV_HUGEPAGE); /* advice: without huge pages the memory is as good as any */
    return start + before;
}

bool blob_map(const char *path, files_mapping *blob, char *error, size_t error_size)
{
    if (!files_map(path, blob, error, error_size))
        return false;
    if (blob->bytes < least_huge)
        return true;
    void *copy = memory_of_large_pages(blob->bytes);
    if (!copy) {
        files_error(error, error_size, "%s: %s", path, strerror(errno));
        files_unmap(blob);
        return false;
    }
    memcpy(copy, blob->data, blob->bytes);
    mprotect(copy, blob->bytes, PROT_READ);
    munmap((void *)(uintptr_t)blob->data, blob->bytes);
    blob->data = copy;
    return true;
}
