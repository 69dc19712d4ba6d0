// Reads fields of the measuring process' job. Each is checked: a wrong one ends the process with one line "path: field: value: rule".
#ifndef LOOKUPC_MEASURE_READER_HH
#define LOOKUPC_MEASURE_READER_HH

#include <jansson.h>

#include <cstddef>
#include <string>
#include <vector>

// Ends the process with one line.
[[noreturn]] __attribute__((format(printf, 1, 2))) void measure_fail(const char *format, ...);

// An object of the job. Texts belong to the job, which lives until the process ends.
class measure_object
{
  public:
    // The object in the file, where duplicate keys are refused.
    explicit measure_object(const char *path);

    bool has(const char *name) const
    {
        return json_object_get(object_, name) != nullptr;
    }
    size_t integer(const char *name, size_t least, size_t most) const;
    // For what may be absent.
    size_t integer_or(const char *name, size_t otherwise, size_t most) const
    {
        return has(name) ? integer(name, 0, most) : otherwise;
    }
    bool flag(const char *name) const; // false if it is absent

    // Text that is not empty; a path that is absolute; a name that becomes a symbol or a part of a call's name.
    const char *text(const char *name) const;
    const char *path(const char *name) const;
    const char *word(const char *name) const;

    measure_object inner(const char *name) const;
    std::vector<measure_object> objects(const char *name) const; // none if it is absent
    std::vector<const json_t *> values(const char *name) const;  // likewise
    double number(const char *name, double least, double most) const;

    const char *file() const
    {
        return path_;
    }
    // A value that is NULL is missing.
    [[noreturn]] __attribute__((format(printf, 4, 5))) void refuse(const char *name, const json_t *value, const char *format, ...) const;

  private:
    measure_object(const measure_object &outer, const json_t *object, const std::string &where);

    const char *path_;
    const json_t *object_;
    std::string where_; // what stands before a field's name: "" or "calls[1]."
};

#endif
