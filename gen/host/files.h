/* Files: read or mapped whole, written all or nothing, and one line for what went wrong. */
#ifndef LOOKUPC_GEN_FILES_H
#define LOOKUPC_GEN_FILES_H

#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "weights are little-endian in their files and copied as they are");

/* Writes one line into error[error_size]: control characters become '?', what does not fit is cut. Returns false, so that a caller can
   `return files_error(...)`. */
bool files_error(char *error, size_t error_size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reads a whole file ("-": standard input) of at most max_bytes into *bytes (malloc'ed, one NUL added behind, not counted in *size).
   On failure *bytes is NULL and error is one line that starts with the path. */
bool files_read(const char *path, size_t max_bytes, char **bytes, size_t *size, char *error, size_t error_size);

/* The same of a regular file only: for files that lookupc finds by their names. Any other is refused, a pipe not waited for. */
bool files_read_regular(const char *path, size_t max_bytes, char **bytes, size_t *size, char *error, size_t error_size);

/* A regular file that is open to be read in pieces, at any place. */
typedef struct {
    const char *path; /* as given, for messages; the caller keeps it */
    int descriptor;   /* -1 for none */
    size_t bytes;     /* when it was opened */
} files_source;

/* Opens a regular file. Fails with "path: reason" when it cannot be opened or is not a regular file; a pipe is refused, not waited for. */
bool files_open(const char *path, files_source *source, char *error, size_t error_size);

/* Reads out[bytes] from byte `at` on. Fails with "path: reason", also when the file has been cut off meanwhile. */
bool files_pread(const files_source *source, size_t at, void *out, size_t bytes, char *error, size_t error_size);

/* No descriptor is allowed. */
void files_close(files_source *source);

/* A whole file in memory, read-only. */
typedef struct {
    const unsigned char *data; /* [bytes]; NULL for an empty file */
    size_t bytes;
} files_mapping;

/* Maps a regular file. Fails as files_open does. Nobody may shorten the file while it is mapped: reading past a new end is a SIGBUS. So
   users' files are read with files_pread, and only files of lookupc's own are mapped. */
bool files_map(const char *path, files_mapping *mapping, char *error, size_t error_size);

void files_unmap(files_mapping *mapping);

/* Notes a file that the user gave to be read: from now on nothing is written in its place. A path that leads to no file is ignored. */
void files_note_input(const char *path);

/* A file that is being written under a temporary name beside its own. */
typedef struct {
    FILE *stream;     /* NULL once everything is on the disk */
    char *path;       /* as given, for messages */
    char *target;     /* what path leads to */
    char *temporary;  /* in the same folder; NULL once it has taken its place */
    bool exists;      /* a file at target, when this one was started */
    size_t folder;    /* its place among the folders that are being written into; 0 for none */
    sigset_t signals; /* as they were */
} files_writer;

/* Fails with one line if path is a symbolic link to nothing: writing there would replace the link or make a file that nobody sees. */
bool files_leads_somewhere(const char *path, char *error, size_t error_size);

/* Starts a file. Fails with "path: reason", also when path exists and is not a regular file, or is one of files_note_input. A symbolic link
   to a file is followed, one to nothing refused; a file that exists keeps its mode. Temporary files that a killed process left in the
   folder are removed. SIGINT, SIGTERM and SIGHUP wait until the file is finished or discarded, so that an interrupt leaves no temporary
   file behind; of several files at a time the one started last must therefore end first. */
bool files_create(files_writer *file, const char *path, char *error, size_t error_size);

/* Appends data[bytes]. After a failure ("path: reason") the caller may only discard. */
bool files_append(files_writer *file, const void *data, size_t bytes, char *error, size_t error_size);

/* Flushes to the disk and renames over path. Frees what file holds, whether it succeeds or not; on failure ("path: reason") the temporary
   file is gone and what stood at path before stays. */
bool files_finish(files_writer *file, char *error, size_t error_size);

/* Removes the temporary file and frees what file holds; a file of all zeros is allowed. */
void files_discard(files_writer *file);

/* Appends line[bytes], which holds no newline, and a newline to a file that is made if need be, and waits for the disk. Writers take turns.
   A last line that a crash has cut off stays a line of its own. On failure ("path: reason") the file has its old length. */
bool files_append_line(const char *path, const char *line, size_t bytes, char *error, size_t error_size);

/* One file to be written; changed is an answer: false if the file had these bytes already and was left alone. */
typedef struct {
    const char *path;
    const char *bytes;
    size_t size;
    bool temporary; /* it need not survive a crash of the machine: nobody waits for the disk */
    bool changed;
} files_output;

/* Writes all files or none, each as with files_create; they are renamed only when all are on the disk, in the order given.
   On failure no file has changed, nothing is left behind, and error is one line that starts with a path. */
bool files_write(files_output *outputs, size_t count, char *error, size_t error_size);

/* The same for files inside one directory, also in folders of it such as "src/a.c". Directories are made if need be, and unmade on failure.
 */
bool files_write_directory(const char *directory, files_output *outputs, size_t count, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
