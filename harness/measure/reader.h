/* Reads fields of the measuring process' job, every one checked: false comes with one line "path: field: value: rule". */
#ifndef LOOKUPC_MEASURE_READER_H
#define LOOKUPC_MEASURE_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct measure_reader {
    const char *path;
    char *error;
    size_t error_size;
    char where[64]; /* what stands before a field's name: "" or "variants[1]." */
} measure_reader;

/* The object in the file; NULL with the line. Duplicate keys are refused. */
json_t *measure_load(const measure_reader *in);

/* Returns false with the line; a value that is NULL is missing. */
bool measure_refuse(const measure_reader *in, const char *name, const json_t *value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

bool measure_check_integer(const measure_reader *in, const char *name, const json_t *value, size_t least, size_t most, size_t *out);
bool measure_read_integer(const measure_reader *in, const json_t *object, const char *name, size_t least, size_t most, size_t *out);

/* Text that is not empty; a path that is absolute; a name that becomes a part of a benchmark's name or a symbol. */
bool measure_read_text(const measure_reader *in, const json_t *object, const char *name, const char **out);
bool measure_read_path(const measure_reader *in, const json_t *object, const char *name, const char **out);
bool measure_read_word(const measure_reader *in, const json_t *object, const char *name, const char **out);

bool measure_read_flag(const measure_reader *in, const json_t *object, const char *name, bool *out);
bool measure_read_array(const measure_reader *in, const json_t *object, const char *name, size_t least, const json_t **out);

/* Reads array[i] of objects by `read` into what `to` points to; `where` gets "name[i].". */
typedef bool measure_read_entry(const measure_reader *in, const json_t *object, void *to, size_t index);
bool measure_read_objects(measure_reader *in, const json_t *array, const char *name, void *to, measure_read_entry *read);

#ifdef __cplusplus
}
#endif

#endif
