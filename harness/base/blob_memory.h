/* Memory in huge pages, where the operating system offers them, and a blob in it that is fast to look rows up in. */
#ifndef LOOKUPC_HARNESS_BLOB_MEMORY_H
#define LOOKUPC_HARNESS_BLOB_MEMORY_H

#include "gen/host/files.h"

/* Memory for bytes, all zero, that starts at a multiple of 2 MiB and asks for pages of that size; for munmap, rounded up to whole pages.
   NULL with errno if there is none. */
void *memory_of_large_pages(size_t bytes);

/* Maps a blob: a small one as it lies in its file, a large one as a copy in memory that asks for pages of 2 MiB, which files mostly cannot
   have. To be released with files_unmap. Fails with one line that starts with the path. */
bool blob_map(const char *path, files_mapping *blob, char *error, size_t error_size);

#endif
