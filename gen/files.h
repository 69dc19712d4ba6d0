/* Files as whole byte strings: reading with a limit, writing all or nothing. */
#ifndef LOOKUPC_GEN_FILES_H
#define LOOKUPC_GEN_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a whole file of at most max_bytes into *bytes (malloc'ed, one NUL added behind, not counted in *size).
   On failure *bytes is NULL and error is one line that starts with the path. */
bool files_read(const char *path, size_t max_bytes, char **bytes, size_t *size, char *error, size_t error_size);

/* One file to be written; changed is an answer: false if the file had these bytes already and was left alone. */
typedef struct {
    const char *path;
    const char *bytes;
    size_t size;
    bool changed;
} files_output;

/* Writes all files or none: every file goes to a temporary one beside it first, is synced to disk, and is renamed only when all are.
   A symbolic link is followed; what is there and not a regular file is refused.
   On failure no file has changed, nothing is left behind, and error is one line that starts with a path. */
bool files_write(files_output *outputs, size_t count, char *error, size_t error_size);

/* The same for files inside one directory, which is made with its parents if need be, and unmade on failure. */
bool files_write_directory(const char *directory, files_output *outputs, size_t count, char *error, size_t error_size);

#endif
