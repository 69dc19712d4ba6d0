/* Matrices of floats in NumPy's .npy format: versions 1.0 and 2.0, '<f4' or '<f8', C order, two dimensions. */
#ifndef LOOKUPC_WEIGHTS_NPY_H
#define LOOKUPC_WEIGHTS_NPY_H

#include "gen/host/files.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads a matrix. Returns float[*rows][*columns] from malloc (never NULL on success, also for 0 rows; *columns is at least 1), or NULL with
   one line that starts with the path: not the format, another version, dtype, order or number of dimensions, a header that is not
   well-formed, data missing or left over. NaN and infinities are values like any other. float64 becomes
   float32; a finite value that has no place there is refused.
   Source: numpy.lib.format, "Format Version 1.0" and "2.0". */
float *npy_read_f32(const char *path, size_t *rows, size_t *columns, char *error, size_t error_size);

/* The same for a matrix that must have so many columns. */
float *npy_read_tokens(const char *path, size_t columns, size_t *rows, char *error, size_t error_size);

/* Whether npy_read_tokens would read this file, how many rows, and whether it converts float64: looks at the header and the file's size
   only. */
bool npy_check_tokens(const char *path, size_t columns, size_t *rows, bool *wide, char *error, size_t error_size);

/* Reads what a framework says of the same rows: '<f4' or '<f8', of one dimension or more, of which the last one counts columns and all
   others together rows. Returns double[*rows][*columns] from malloc, or NULL with one line. */
double *npy_read_any(const char *path, size_t *rows, size_t *columns, char *error, size_t error_size);

/* A matrix that is being written row by row. */
typedef struct {
    files_writer file;
    size_t rows, columns;
} npy_writer;

/* Starts a file of version 1.0; the same rules as for files_create, which holds back signals until the file is finished or discarded. */
bool npy_create(npy_writer *writer, const char *path, size_t columns, char *error, size_t error_size);

/* Appends data[rows][columns]. After a failure the caller may only discard. */
bool npy_append(npy_writer *writer, const float *data, size_t rows, char *error, size_t error_size);

/* Ends the file, which takes its place, or on failure is gone. */
bool npy_finish(npy_writer *writer, char *error, size_t error_size);

void npy_discard(npy_writer *writer);

/* Writes data[rows][columns] as version 1.0, whole or not at all: on failure one line that starts with the path, and what stood at path
   before stays. data may be NULL when rows is 0. */
bool npy_write_f32(const char *path, size_t rows, size_t columns, const float *data, char *error, size_t error_size);

#endif
