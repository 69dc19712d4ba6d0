/* Reads fields of the measuring process' job, every one checked. */
#include "harness/measure/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *measure_load(const measure_reader *in)
{
    json_error_t mistake;
    json_t *root = json_load_file(in->path, JSON_REJECT_DUPLICATES, &mistake);
    if (json_is_object(root)) {
        return root;
    }
    if (root) {
        snprintf(in->error, in->error_size, "%s: must be an object", in->path);
    } else if (mistake.line > 0) {
        snprintf(in->error, in->error_size, "%s:%d: %s", in->path, mistake.line, mistake.text);
    } else {
        snprintf(in->error, in->error_size, "%s: %s", in->path, mistake.text);
    }
    json_decref(root);
    return NULL;
}

bool measure_refuse(const measure_reader *in, const char *name, const json_t *value, const char *format, ...)
{
    char rule[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rule, sizeof(rule), format, arguments);
    va_end(arguments);
    if (!value) {
        snprintf(in->error, in->error_size, "%s: %s%s: missing: %s", in->path, in->where, name, rule);
        return false;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    snprintf(in->error, in->error_size, "%s: %s%s: %.60s: %s", in->path, in->where, name, text ? text : "?", rule);
    free(text);
    return false;
}

bool measure_check_integer(const measure_reader *in, const char *name, const json_t *value, size_t least, size_t most, size_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)least || json_integer_value(value) > (json_int_t)most) {
        return measure_refuse(in, name, value, "must be an integer from %zu to %zu", least, most);
    }
    *out = (size_t)json_integer_value(value);
    return true;
}

bool measure_read_integer(const measure_reader *in, const json_t *object, const char *name, size_t least, size_t most, size_t *out)
{
    return measure_check_integer(in, name, json_object_get(object, name), least, most, out);
}

bool measure_read_text(const measure_reader *in, const json_t *object, const char *name, const char **out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value) || json_string_length(value) == 0) {
        return measure_refuse(in, name, value, "must be text that is not empty");
    }
    *out = json_string_value(value);
    return true;
}

bool measure_read_path(const measure_reader *in, const json_t *object, const char *name, const char **out)
{
    if (!measure_read_text(in, object, name, out)) {
        return false;
    }
    if (**out != '/') {
        return measure_refuse(in, name, json_object_get(object, name), "must be an absolute path");
    }
    return true;
}

bool measure_read_word(const measure_reader *in, const json_t *object, const char *name, const char **out)
{
    if (!measure_read_text(in, object, name, out)) {
        return false;
    }
    if (strspn(*out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen(*out)) {
        return measure_refuse(in, name, json_object_get(object, name), "must consist of letters, digits and underscores");
    }
    return true;
}

bool measure_read_flag(const measure_reader *in, const json_t *object, const char *name, bool *out)
{
    const json_t *value = json_object_get(object, name);
    *out = json_is_true(value);
    return json_is_boolean(value) || measure_refuse(in, name, value, "must be true or false");
}

bool measure_read_array(const measure_reader *in, const json_t *object, const char *name, size_t least, const json_t **out)
{
    *out = json_object_get(object, name);
    if (!json_is_array(*out) || json_array_size(*out) < least) {
        return measure_refuse(in, name, *out, least ? "must be an array with at least one entry" : "must be an array");
    }
    return true;
}

bool measure_read_objects(measure_reader *in, const json_t *array, const char *name, void *to, measure_read_entry *read)
{
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const json_t *object = json_array_get(array, i);
        snprintf(in->where, sizeof(in->where), "%s[%zu]", name, i);
        if (!json_is_object(object)) {
            return measure_refuse(in, "", object, "must be an object");
        }
        strcat(in->where, ".");
        if (!read(in, object, to, i)) {
            return false;
        }
    }
    in->where[0] = '\0';
    return true;
}
