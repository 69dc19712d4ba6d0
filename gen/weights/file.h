/* Files as the weights need them: mapped for reading, written so that they appear whole or not at all, and one line for what went wrong. */
#ifndef LOOKUPC_WEIGHTS_FILE_H
#define LOOKUPC_WEIGHTS_FILE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The formats are little-endian; values are copied as they are. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the weights are read and written on little-endian hosts only");

/* Writes one line into error[error_size]: control characters become '?', what does not fit is cut. Returns false, so that a caller can
   `return file_error(...)`. */
bool file_error(char *error, size_t error_size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A whole file in memory, read-only. */
typedef struct {
    const unsigned char *data; /* [bytes]; NULL for an empty file */
    size_t bytes;
} mapped_file;

/* Maps a regular file. Fails with "path: reason" when it cannot be opened or is not a regular file. Nobody may shorten the file while it
   is mapped: reading past a new end is a SIGBUS. */
bool file_map(const char *path, mapped_file *file, char *error, size_t error_size);

void file_unmap(mapped_file *file);

/* A file that is being written under a temporary name beside its own. */
typedef struct {
    FILE *stream;
    char *path;       /* as given, for messages */
    char *target;     /* what path leads to */
    char *temporary;  /* in the same folder */
    sigset_t signals; /* as they were */
} output_file;

/* Starts a file. Fails with "path: reason", also when path exists and is not a regular file. A symbolic link is followed; a file that
   exists keeps its mode. SIGINT, SIGTERM and SIGHUP wait until the file is finished or discarded, so that an interrupt leaves no temporary
   file behind; hence one output file at a time. */
bool output_file_create(output_file *file, const char *path, char *error, size_t error_size);

/* Appends data[bytes]. After a failure ("path: reason") the caller may only discard. */
bool output_file_write(output_file *file, const void *data, size_t bytes, char *error, size_t error_size);

/* Flushes to the disk and renames over path. Frees what file holds, whether it succeeds or not; on failure ("path: reason") the temporary
   file is gone and what stood at path before stays. */
bool output_file_finish(output_file *file, char *error, size_t error_size);

/* Removes the temporary file and frees what file holds. */
void output_file_discard(output_file *file);

#endif
