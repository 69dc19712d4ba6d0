/* Reads fields of the measuring process' job. */
#include "harness/measure/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path_of_job;

static const char program[] = "lookupc-measure: ";

_Noreturn static void end_line(const char *format, va_list arguments)
{
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

void job_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs(program, stderr);
    end_line(format, arguments);
}

static void *checked(void *memory, size_t count, size_t bytes)
{
    if (!memory) {
        job_fail("out of memory for %zu times %zu bytes", count, bytes);
    }
    return memory;
}

void *job_room(size_t count, size_t bytes)
{
    return checked(calloc(count + 1, bytes), count, bytes);
}

void *job_more(void *array, size_t count, size_t bytes)
{
    return checked(reallocarray(array, count + 1, bytes), count, bytes);
}

job_object job_read(const char *path)
{
    json_error_t mistake;
    const job_object o = {.json = json_load_file(path, JSON_REJECT_DUPLICATES, &mistake), .place = SIZE_MAX};
    path_of_job = path;
    if (!o.json) {
        job_fail("%s:%d: %s", path, mistake.line, mistake.text);
    }
    if (!json_is_object(o.json)) {
        job_fail("%s: must be an object", path);
    }
    return o;
}

/* Prints "calls[1].steps[0]" and what stands behind it, if it is printed. */
static void print_place(const job_object *o, const char *behind)
{
    if (o->outer) {
        print_place(o->outer, ".");
        fputs(o->name, stderr);
        if (o->place != SIZE_MAX) {
            fprintf(stderr, "[%zu]", o->place);
        }
        fputs(behind, stderr);
    }
}

void job_refuse(const job_object *o, const char *name, const json_t *value, const char *rule, ...)
{
    const char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : "missing";
    va_list arguments;
    va_start(arguments, rule);
    fprintf(stderr, "%s%s: ", program, path_of_job);
    print_place(o, name ? "." : "");
    fprintf(stderr, "%s: %.60s: ", name ? name : "", text ? text : "?");
    end_line(rule, arguments);
}

static const json_t *field(const job_object *o, const char *name)
{
    return json_object_get(o->json, name);
}

size_t job_integer(const job_object *o, const char *name, size_t least, size_t most)
{
    const json_t *value = field(o, name);
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)least || json_integer_value(value) > (json_int_t)most) {
        job_refuse(o, name, value, "must be an integer from %zu to %zu", least, most);
    }
    return (size_t)json_integer_value(value);
}

size_t job_integer_or(const job_object *o, const char *name, size_t otherwise, size_t least, size_t most)
{
    return job_has(o, name) ? job_integer(o, name, least, most) : otherwise;
}

double job_number(const job_object *o, const char *name, double least, double most)
{
    const json_t *value = field(o, name);
    const double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= least && number <= most)) {
        job_refuse(o, name, value, "must be a number from %g to %g", least, most);
    }
    return number;
}

bool job_flag(const job_object *o, const char *name)
{
    const json_t *value = field(o, name);
    if (value && !json_is_boolean(value)) {
        job_refuse(o, name, value, "must be true or false");
    }
    return json_is_true(value);
}

bool job_has(const job_object *o, const char *name)
{
    return field(o, name) != NULL;
}

const char *job_text(const job_object *o, const char *name)
{
    const json_t *value = field(o, name);
    if (json_string_length(value) == 0) {
        job_refuse(o, name, value, "must be text that is not empty");
    }
    return json_string_value(value);
}

const char *job_path(const job_object *o, const char *name)
{
    const char *text = job_text(o, name);
    if (*text != '/') {
        job_refuse(o, name, field(o, name), "must be an absolute path");
    }
    return text;
}

const char *job_word(const job_object *o, const char *name)
{
    const char *text = job_text(o, name);
    if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen(text)) {
        job_refuse(o, name, field(o, name), "must consist of letters, digits and underscores");
    }
    return text;
}

static job_object within(const job_object *outer, const char *name, size_t place, const json_t *json)
{
    const job_object o = {json, outer, name, place};
    if (!json_is_object(json)) {
        job_refuse(&o, NULL, json, "must be an object");
    }
    return o;
}

job_object job_inner(const job_object *o, const char *name)
{
    return within(o, name, SIZE_MAX, field(o, name));
}

size_t job_count(const job_object *o, const char *name)
{
    const json_t *list = field(o, name);
    if (list && !json_is_array(list)) {
        job_refuse(o, name, list, "must be an array");
    }
    return json_array_size(list);
}

const json_t *job_value(const job_object *o, const char *name, size_t place)
{
    return json_array_get(field(o, name), place);
}

bool job_next(const job_object *o, const char *name, job_object *element)
{
    const size_t place = element->outer ? element->place + 1 : 0;
    if (place == job_count(o, name)) {
        return false;
    }
    *element = within(o, name, place, job_value(o, name, place));
    return true;
}
