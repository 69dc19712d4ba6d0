/* Matrices of floats in NumPy's .npy format: versions 1.0 and 2.0, '<f4' or '<f8', C order, two dimensions. */
#ifndef LOOKUPC_WEIGHTS_NPY_H
#define LOOKUPC_WEIGHTS_NPY_H

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

/* Writes data[rows][columns] as version 1.0, whole or not at all: on failure one line that starts with the path, and what stood at path
   before stays. data may be NULL when rows is 0. */
bool npy_write_f32(const char *path, size_t rows, size_t columns, const float *data, char *error, size_t error_size);

#endif
