/* Matrices of floats in NumPy's .npy format: versions 1.0 and 2.0, '<f4' or '<f8', C order, two dimensions. */
#include "gen/weights/npy.h"

#include "gen/host/files.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A file starts with

       93 'N' 'U' 'M' 'P' 'Y'   major   minor   header length          header        data
       6 bytes                  1       1       2 (v1) or 4 (v2), LE   that length   rows * columns * 4

   and the header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

enum { VERSION_AT = 6, LENGTH_AT = 8, ALIGNMENT = 64 };

/* The header's text while it is parsed, and where to report. */
typedef struct {
    const char *path;
    const char *start;
    const char *at;
    const char *end;
    char *error;
    size_t error_size;
    bool any; /* shape of npy_read_any */
} header_text;

/* What a header says. */
typedef struct {
    size_t rows, columns;
    size_t bytes; /* of a value */
} matrix_shape;

static bool expected(const header_text *text, const char *what)
{
    return files_error(text->error, text->error_size, "%s: header: byte %td: expected %s", text->path, text->at - text->start, what);
}

static void skip_space(header_text *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t' || *text->at == '\n' || *text->at == '\r')) {
        ++text->at;
    }
}

/* Takes the character if it comes next after white space. */
static bool take(header_text *text, char character)
{
    skip_space(text);
    if (text->at < text->end && *text->at == character) {
        ++text->at;
        return true;
    }
    return false;
}

/* Takes the word if it comes next after white space. */
static bool take_word(header_text *text, const char *word)
{
    const size_t length = strlen(word);
    skip_space(text);
    if ((size_t)(text->end - text->at) >= length && memcmp(text->at, word, length) == 0) {
        text->at += length;
        return true;
    }
    return false;
}

/* Takes a string in single or double quotes, without escapes, of at most 31 characters. */
static bool take_string(header_text *text, char string[32])
{
    skip_space(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"')) {
        return expected(text, "a string");
    }
    const char *close = memchr(text->at + 1, *text->at, (size_t)(text->end - text->at - 1));
    if (close == NULL || close - text->at > 32) {
        return expected(text, "a string of at most 31 characters");
    }
    const size_t length = (size_t)(close - text->at - 1);
    memcpy(string, text->at + 1, length);
    string[length] = '\0';
    text->at = close + 1;
    return true;
}

static bool take_descr(header_text *text, matrix_shape *shape)
{
    char descr[32];
    if (!take_string(text, descr)) {
        return false;
    }
    if (strcmp(descr, "<f4") != 0 && strcmp(descr, "<f8") != 0) {
        return files_error(text->error, text->error_size, "%s: descr: '%s': must be '<f4' or '<f8' (float32 or float64, little-endian)",
                           text->path, descr);
    }
    shape->bytes = descr[2] == '8' ? sizeof(double) : sizeof(float);
    return true;
}

static bool take_fortran_order(header_text *text)
{
    if (take_word(text, "True")) {
        return files_error(text->error, text->error_size, "%s: fortran_order: True: must be False", text->path);
    }
    return take_word(text, "False") || expected(text, "True or False");
}

static bool take_shape(header_text *text, matrix_shape *shape)
{
    int rank = 0;
    if (!take(text, '(')) {
        return expected(text, "a tuple");
    }
    shape->rows = shape->columns = 1;
    while (!take(text, ')')) {
        size_t value = 0;
        const char *const first = text->at;
        for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; ++text->at) {
            if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (size_t)(*text->at - '0'), &value)) {
                return files_error(text->error, text->error_size, "%s: shape: dimension %d is too large", text->path, rank);
            }
        }
        if (text->at == first) {
            return expected(text, "a dimension, an integer not below 0");
        }
        if (__builtin_mul_overflow(shape->rows, shape->columns, &shape->rows)) {
            return files_error(text->error, text->error_size, "%s: shape: too large", text->path);
        }
        shape->columns = value;
        ++rank;
        if (!take(text, ',')) {
            if (!take(text, ')')) {
                return expected(text, "',' or ')'");
            }
            break;
        }
    }
    if (text->any ? rank == 0 : rank != 2) {
        return files_error(text->error, text->error_size, "%s: shape: %d dimension%s: must be %s, (rows, columns)", text->path, rank,
                           rank == 1 ? "" : "s", text->any ? "1 or more" : "2");
    }
    return true;
}

/* Parses the whole header; every key exactly once, in any order. */
static bool parse_header(header_text *text, matrix_shape *shape)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false, false, false};

    if (!take(text, '{')) {
        return expected(text, "'{'");
    }
    while (!take(text, '}')) {
        char key[32];
        if (!take_string(text, key)) {
            return false;
        }
        size_t k = 0;
        while (k < 3 && strcmp(key, keys[k]) != 0) {
            ++k;
        }
        if (k == 3) {
            return files_error(text->error, text->error_size, "%s: header: %s: unknown key", text->path, key);
        }
        if (seen[k]) {
            return files_error(text->error, text->error_size, "%s: header: %s: given twice", text->path, key);
        }
        seen[k] = true;
        if (!take(text, ':')) {
            return expected(text, "':'");
        }
        if ((k == 0 && !take_descr(text, shape)) || (k == 1 && !take_fortran_order(text)) || (k == 2 && !take_shape(text, shape))) {
            return false;
        }
        if (!take(text, ',')) {
            if (!take(text, '}')) {
                return expected(text, "',' or '}'");
            }
            break;
        }
    }
    skip_space(text);
    if (text->at != text->end) {
        return expected(text, "nothing after '}'");
    }
    for (size_t k = 0; k < 3; ++k) {
        if (!seen[k]) {
            return files_error(text->error, text->error_size, "%s: header: %s: missing", text->path, keys[k]);
        }
    }
    return true;
}

/* The shape of the matrix in an open file, and where in the file its values start; or false with a line in error. */
static bool find_values(const files_source *file, bool any, matrix_shape *shape, size_t *at, char *error, size_t error_size)
{
    const char *const path = file->path;
    unsigned char front[LENGTH_AT + 4];
    const size_t front_bytes = file->bytes < sizeof front ? file->bytes : sizeof front;
    if (!files_pread(file, 0, front, front_bytes, error, error_size)) {
        return false;
    }
    if (file->bytes < LENGTH_AT || memcmp(front, magic, sizeof magic) != 0) {
        return files_error(error, error_size, "%s: not an .npy file", path);
    }
    const int major = front[VERSION_AT];
    const int minor = front[VERSION_AT + 1];
    if ((major != 1 && major != 2) || minor != 0) {
        return files_error(error, error_size, "%s: version: %d.%d: must be 1.0 or 2.0", path, major, minor);
    }
    const size_t header_at = major == 1 ? LENGTH_AT + 2 : LENGTH_AT + 4;
    if (file->bytes < header_at) {
        return files_error(error, error_size, "%s: header: cut off", path);
    }
    size_t length = 0;
    memcpy(&length, front + LENGTH_AT, header_at - LENGTH_AT);
    if (length > file->bytes - header_at) {
        return files_error(error, error_size, "%s: header: length %zu: the file has only %zu bytes after it", path, length,
                           file->bytes - header_at);
    }

    char *const header = malloc(length + 1);
    if (header == NULL) {
        return files_error(error, error_size, "%s: out of memory", path);
    }
    header_text text = {path, header, header, header + length, error, error_size, any};
    const bool good = files_pread(file, header_at, header, length, error, error_size) && parse_header(&text, shape);
    free(header);
    if (!good) {
        return false;
    }
    size_t bytes;
    if (shape->columns == 0) {
        return files_error(error, error_size, "%s: shape: (%zu, 0): must have at least one column", path, shape->rows);
    }
    if (__builtin_mul_overflow(shape->rows, shape->columns, &bytes) || __builtin_mul_overflow(bytes, shape->bytes, &bytes)) {
        return files_error(error, error_size, "%s: shape: (%zu, %zu): too large", path, shape->rows, shape->columns);
    }
    const size_t data_bytes = file->bytes - header_at - length;
    if (data_bytes != bytes) {
        return files_error(error, error_size, "%s: data: %zu bytes: must be %zu for shape (%zu, %zu)", path, data_bytes, bytes, shape->rows,
                           shape->columns);
    }
    *at = header_at + length;
    return true;
}

/* `bytes` bytes of values from byte `at` on, in memory that the caller frees, or NULL with a line in error. */
static void *read_values(const files_source *file, size_t at, size_t bytes, char *error, size_t error_size)
{
    void *values = malloc(bytes > 0 ? bytes : 1);
    if (values == NULL) {
        files_error(error, error_size, "%s: out of memory", file->path);
        return NULL;
    }
    if (!files_pread(file, at, values, bytes, error, error_size)) {
        free(values);
        return NULL;
    }
    return values;
}

/* Whether a file is a matrix, of `wanted` columns if that is not 0; puts its values into *values unless that is NULL. */
static bool look(const char *path, bool any, size_t wanted, matrix_shape *shape, void **values, char *error, size_t error_size)
{
    files_source file;
    if (!files_open(path, &file, error, error_size)) {
        return false;
    }
    size_t at = 0;
    bool good = find_values(&file, any, shape, &at, error, error_size);
    if (good && wanted > 0 && shape->columns != wanted) {
        good = files_error(error, error_size, "%s: %zu columns: must be d = %zu", path, shape->columns, wanted);
    }
    if (good && values != NULL) {
        *values = read_values(&file, at, shape->rows * shape->columns * shape->bytes, error, error_size);
        good = *values != NULL;
    }
    files_close(&file);
    return good;
}

/* The `count` values of a file that look has read as float32, or NULL with a line: float64 takes their place in front, and one that float32
   cannot hold is refused. */
static float *as_floats(const char *path, void *values, const matrix_shape *shape, char *error, size_t error_size)
{
    const size_t count = shape->bytes == sizeof(double) ? shape->rows * shape->columns : 0;
    for (size_t i = 0; i < count; ++i) {
        double value;
        memcpy(&value, (const char *)values + i * sizeof value, sizeof value);
        const float narrow = (float)value;
        if (isinf(narrow) && !isinf(value)) {
            files_error(error, error_size, "%s: value %zu: %g: is too large for float32", path, i, value);
            free(values);
            return NULL;
        }
        memcpy((char *)values + i * sizeof narrow, &narrow, sizeof narrow);
    }
    return values;
}

float *npy_read_f32(const char *path, size_t *rows, size_t *columns, char *error, size_t error_size)
{
    void *values = NULL;
    matrix_shape shape;
    if (!look(path, false, 0, &shape, &values, error, error_size)) {
        return NULL;
    }
    *rows = shape.rows;
    *columns = shape.columns;
    return as_floats(path, values, &shape, error, error_size);
}

float *npy_read_tokens(const char *path, size_t columns, size_t *rows, char *error, size_t error_size)
{
    void *values = NULL;
    matrix_shape shape;
    if (!look(path, false, columns, &shape, &values, error, error_size)) {
        return NULL;
    }
    *rows = shape.rows;
    return as_floats(path, values, &shape, error, error_size);
}

bool npy_check_tokens(const char *path, size_t columns, size_t *rows, bool *wide, char *error, size_t error_size)
{
    matrix_shape shape;
    if (!look(path, false, columns, &shape, NULL, error, error_size)) {
        return false;
    }
    *rows = shape.rows;
    *wide = shape.bytes == sizeof(double);
    return true;
}

double *npy_read_any(const char *path, size_t *rows, size_t *columns, char *error, size_t error_size)
{
    void *values = NULL;
    matrix_shape shape;
    if (!look(path, true, 0, &shape, &values, error, error_size)) {
        return NULL;
    }
    *rows = shape.rows;
    *columns = shape.columns;
    const size_t count = shape.rows * shape.columns;
    if (shape.bytes == sizeof(double)) {
        return values;
    }
    double *doubles = malloc(count > 0 ? count * sizeof *doubles : 1);
    if (doubles == NULL) {
        files_error(error, error_size, "%s: out of memory", path);
    } else {
        const float *floats = values;
        for (size_t i = 0; i < count; ++i) {
            doubles[i] = (double)floats[i];
        }
    }
    free(values);
    return doubles;
}

enum { HEADER_BYTES = 2 * ALIGNMENT };

/* The header of version 1.0. Its dictionary with two numbers of up to 20 digits is never longer than the room; spaces and a line feed fill
   it up to the data's alignment. */
static void print_header(char header[HEADER_BYTES], size_t rows, size_t columns)
{
    memcpy(header, magic, sizeof magic);
    header[VERSION_AT] = 1;
    header[VERSION_AT + 1] = 0;
    const size_t start = LENGTH_AT + 2;
    const int written =
        snprintf(header + start, HEADER_BYTES - start, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, columns);
    const size_t used = start + (size_t)written;
    memset(header + used, ' ', HEADER_BYTES - used - 1);
    header[HEADER_BYTES - 1] = '\n';
    const uint16_t length = (uint16_t)(HEADER_BYTES - start);
    memcpy(header + LENGTH_AT, &length, sizeof length);
}

bool npy_create(npy_writer *writer, const char *path, size_t columns, char *error, size_t error_size)
{
    char header[HEADER_BYTES];
    *writer = (npy_writer){.columns = columns};
    if (!files_create(&writer->file, path, error, error_size)) {
        return false;
    }
    print_header(header, 0, columns); /* printed again with the number of rows */
    if (!files_append(&writer->file, header, sizeof header, error, error_size)) {
        npy_discard(writer);
        return false;
    }
    return true;
}

bool npy_append(npy_writer *writer, const float *data, size_t rows, char *error, size_t error_size)
{
    writer->rows += rows;
    return files_append(&writer->file, data, rows * writer->columns * sizeof *data, error, error_size);
}

bool npy_finish(npy_writer *writer, char *error, size_t error_size)
{
    char header[HEADER_BYTES];
    print_header(header, writer->rows, writer->columns);
    if (fseek(writer->file.stream, 0, SEEK_SET) != 0) {
        files_error(error, error_size, "%s: %s", writer->file.path, strerror(errno));
        npy_discard(writer);
        return false;
    }
    if (!files_append(&writer->file, header, sizeof header, error, error_size)) {
        npy_discard(writer);
        return false;
    }
    return files_finish(&writer->file, error, error_size);
}

void npy_discard(npy_writer *writer)
{
    files_discard(&writer->file);
}

bool npy_write_f32(const char *path, size_t rows, size_t columns, const float *data, char *error, size_t error_size)
{
    npy_writer writer;
    if (!npy_create(&writer, path, columns, error, error_size)) {
        return false;
    }
    if (!npy_append(&writer, data, rows, error, error_size)) {
        npy_discard(&writer);
        return false;
    }
    return npy_finish(&writer, error, error_size);
}
