/* Reads fields of the measuring process' job. Each is checked: a wrong one ends the process with one line "path: field: value: rule". */
#ifndef LOOKUPC_MEASURE_JOB_H
#define LOOKUPC_MEASURE_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the process with one line. */
_Noreturn void job_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory of zeros for `count` things of so many bytes, not NULL for none. It lives until the process ends. */
void *job_room(size_t count, size_t bytes);

/* An array of `count` such things with room for one more. */
void *job_more(void *array, size_t count, size_t bytes);

/* An object of the job, whose texts live until the process ends. */
typedef struct job_object {
    const json_t *json;
    const struct job_object *outer; /* that it stands in, and that must outlive it; NULL: it is the whole job */
    const char *name;               /* of its field there */
    size_t place;                   /* in a list; SIZE_MAX: in none */
} job_object;

/* The object in the file, where duplicate keys are refused. */
job_object job_read(const char *path);

/* A number, or what stands for one that is absent. */
size_t job_integer(const job_object *o, const char *name, size_t least, size_t most);
size_t job_integer_or(const job_object *o, const char *name, size_t otherwise, size_t least, size_t most);
double job_number(const job_object *o, const char *name, double least, double most);
bool job_flag(const job_object *o, const char *name); /* false if it is absent */
bool job_has(const job_object *o, const char *name);

/* Text that is not empty; a path that is absolute; a name that becomes a symbol or a part of a call's name. */
const char *job_text(const job_object *o, const char *name);
const char *job_path(const job_object *o, const char *name);
const char *job_word(const job_object *o, const char *name);

job_object job_inner(const job_object *o, const char *name);

/* Of a list, which is empty if it is absent. */
size_t job_count(const job_object *o, const char *name);
const json_t *job_value(const job_object *o, const char *name, size_t place);

/* Whether there is one more object in the list; *element becomes it, the first one if it is {0}. */
bool job_next(const job_object *o, const char *name, job_object *element);

/* Refuses the value of a field, NULL for a missing one; without a name the object itself. */
_Noreturn void job_refuse(const job_object *o, const char *name, const json_t *value, const char *rule, ...)
    __attribute__((format(printf, 4, 5)));

#endif
