// Reads fields of the measuring process' job.
#include "harness/measure/reader.hh"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

void measure_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::fputs("lookupc-measure: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
    std::exit(1);
}

measure_object::measure_object(const char *path) : path_(path)
{
    json_error_t mistake;
    object_ = json_load_file(path, JSON_REJECT_DUPLICATES, &mistake);
    if (!object_) {
        measure_fail("%s:%d: %s", path, mistake.line, mistake.text);
    }
    if (!json_is_object(object_)) {
        measure_fail("%s: must be an object", path);
    }
}

measure_object::measure_object(const measure_object &outer, const json_t *object, const std::string &where)
    : path_(outer.path_), object_(object), where_(outer.where_ + where)
{
    if (!json_is_object(object)) {
        outer.refuse(where.c_str(), object, "must be an object");
    }
    where_ += ".";
}

void measure_object::refuse(const char *name, const json_t *value, const char *format, ...) const
{
    char rule[160];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(rule, sizeof(rule), format, arguments);
    va_end(arguments);
    if (!value) {
        measure_fail("%s: %s%s: missing: %s", path_, where_.c_str(), name, rule);
    }
    const char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    measure_fail("%s: %s%s: %.60s: %s", path_, where_.c_str(), name, text ? text : "?", rule);
}

size_t measure_object::integer(const char *name, size_t least, size_t most) const
{
    const json_t *value = json_object_get(object_, name);
    if (!json_is_integer(value) || json_integer_value(value) < static_cast<json_int_t>(least) ||
        json_integer_value(value) > static_cast<json_int_t>(most)) {
        refuse(name, value, "must be an integer from %zu to %zu", least, most);
    }
    return static_cast<size_t>(json_integer_value(value));
}

double measure_object::number(const char *name, double least, double most) const
{
    const json_t *value = json_object_get(object_, name);
    const double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= least && number <= most)) {
        refuse(name, value, "must be a number from %g to %g", least, most);
    }
    return number;
}

bool measure_object::flag(const char *name) const
{
    const json_t *value = json_object_get(object_, name);
    if (value && !json_is_boolean(value)) {
        refuse(name, value, "must be true or false");
    }
    return json_is_true(value);
}

const char *measure_object::text(const char *name) const
{
    const json_t *value = json_object_get(object_, name);
    if (json_string_length(value) == 0) {
        refuse(name, value, "must be text that is not empty");
    }
    return json_string_value(value);
}

const char *measure_object::path(const char *name) const
{
    const char *found = text(name);
    if (*found != '/') {
        refuse(name, json_object_get(object_, name), "must be an absolute path");
    }
    return found;
}

const char *measure_object::word(const char *name) const
{
    const char *found = text(name);
    if (std::strspn(found, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != std::strlen(found)) {
        refuse(name, json_object_get(object_, name), "must consist of letters, digits and underscores");
    }
    return found;
}

measure_object measure_object::inner(const char *name) const
{
    return {*this, json_object_get(object_, name), name};
}

std::vector<const json_t *> measure_object::values(const char *name) const
{
    const json_t *array = json_object_get(object_, name);
    if (array && !json_is_array(array)) {
        refuse(name, array, "must be an array");
    }
    std::vector<const json_t *> list;
    for (size_t i = 0; i < json_array_size(array); ++i) {
        list.push_back(json_array_get(array, i));
    }
    return list;
}

std::vector<measure_object> measure_object::objects(const char *name) const
{
    std::vector<measure_object> list;
    for (const json_t *value : values(name)) {
        list.push_back({*this, value, std::string(name) + "[" + std::to_string(list.size()) + "]"});
    }
    return list;
}
