/* Tensors in the safetensors format: a reader that trusts nothing in the file, and a writer that streams. */
#include "gen/weights/safetensors.h"

#include "gen/host/files.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A file is

       header length        header                          data
       8 bytes, LE          that length, JSON, from '{'     up to the end of the file

   and the header is {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}} with
   offsets from the start of the data, which the tensors fill without overlaps and holes. */
enum { LENGTH_BYTES = 8 };

static const char metadata_key[] = "__metadata__";

/* Every dtype of the format; first those that can be read, in the order of their enum. */
static const struct {
    const char *name;
    unsigned bits;
    safetensors_dtype dtype;
} dtypes[] = {
    {"F32", 32, DTYPE_F32},
    {"F16", 16, DTYPE_F16},
    {"BF16", 16, DTYPE_BF16},
    {"F64", 64, DTYPE_F64},
    {"BOOL", 8, DTYPE_UNREADABLE},
    {"U8", 8, DTYPE_UNREADABLE},
    {"I8", 8, DTYPE_UNREADABLE},
    {"U16", 16, DTYPE_UNREADABLE},
    {"I16", 16, DTYPE_UNREADABLE},
    {"U32", 32, DTYPE_UNREADABLE},
    {"I32", 32, DTYPE_UNREADABLE},
    {"U64", 64, DTYPE_UNREADABLE},
    {"I64", 64, DTYPE_UNREADABLE},
    {"C64", 64, DTYPE_UNREADABLE},
    {"F4", 4, DTYPE_UNREADABLE},
    {"F6_E2M3", 6, DTYPE_UNREADABLE},
    {"F8_E4M3FNUZ", 8, DTYPE_UNREADABLE},
    {"F8_E5M2FNUZ", 8, DTYPE_UNREADABLE},
    {"F6_E3M2", 6, DTYPE_UNREADABLE},
    {"F8_E5M2", 8, DTYPE_UNREADABLE},
    {"F8_E4M3", 8, DTYPE_UNREADABLE},
    {"F8_E8M0", 8, DTYPE_UNREADABLE},
};

struct safetensors {
    char *path;
    files_mapping mapped;
    json_t *header;              /* owns the names */
    safetensors_tensor *tensors; /* [count], in the order of names */
    size_t count;
};

/* Where a failure is reported while a header is checked. */
typedef struct {
    const char *path;
    char *error;
    size_t error_size;
} reporter;

/* One line about one tensor; a long name is cut. Returns false. */
static bool __attribute__((format(printf, 3, 4))) tensor_error(const reporter *report, const char *name, const char *format, ...)
{
    char rule[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rule, sizeof rule, format, arguments);
    va_end(arguments);
    return files_error(report->error, report->error_size, "%s: tensor %.200s: %s", report->path, name, rule);
}

/* ---- reading the header ---- */

static bool parse_dtype(const reporter *report, safetensors_tensor *tensor, const json_t *value, unsigned *bits)
{
    const char *name = json_string_value(value);
    if (name == NULL) {
        return tensor_error(report, tensor->name, "dtype: must be a string");
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i) {
        if (strcmp(name, dtypes[i].name) == 0) {
            tensor->dtype = dtypes[i].dtype;
            tensor->dtype_name = dtypes[i].name;
            *bits = dtypes[i].bits;
            return true;
        }
    }
    return tensor_error(report, tensor->name, "dtype: %.40s: not a dtype of the format", name);
}

static bool parse_shape(const reporter *report, safetensors_tensor *tensor, const json_t *value)
{
    if (!json_is_array(value)) {
        return tensor_error(report, tensor->name, "shape: must be an array");
    }
    const size_t rank = json_array_size(value);
    if (rank > SAFETENSORS_MAX_RANK) {
        return tensor_error(report, tensor->name, "shape: %zu dimensions: must be at most %d", rank, SAFETENSORS_MAX_RANK);
    }
    tensor->rank = (int)rank;
    tensor->count = 1;
    for (size_t i = 0; i < rank; ++i) {
        const json_t *dimension = json_array_get(value, i);
        if (!json_is_integer(dimension)) {
            return tensor_error(report, tensor->name, "shape: dimension %zu: must be an integer", i);
        }
        tensor->shape[i] = json_integer_value(dimension);
        if (tensor->shape[i] < 0) {
            return tensor_error(report, tensor->name, "shape: dimension %zu: %" PRId64 ": must not be negative", i, tensor->shape[i]);
        }
        if (__builtin_mul_overflow(tensor->count, tensor->shape[i], &tensor->count)) {
            return tensor_error(report, tensor->name, "shape: the number of elements overflows");
        }
    }
    return true;
}

static bool parse_offsets(const reporter *report, safetensors_tensor *tensor, const json_t *value, const files_mapping *data, unsigned bits)
{
    const json_t *first = json_array_get(value, 0); /* NULL when value is no array */
    const json_t *second = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(second) || json_integer_value(first) < 0 ||
        json_integer_value(second) < 0) {
        return tensor_error(report, tensor->name, "data_offsets: must be two integers not below 0");
    }
    const uint64_t begin = (uint64_t)json_integer_value(first);
    const uint64_t end = (uint64_t)json_integer_value(second);
    if (begin > end) {
        return tensor_error(report, tensor->name, "data_offsets: [%" PRIu64 ", %" PRIu64 "]: the end is before the begin", begin, end);
    }
    if (end > data->bytes) {
        return tensor_error(report, tensor->name, "data_offsets: [%" PRIu64 ", %" PRIu64 "]: the file has only %zu bytes of data", begin,
                            end, data->bytes);
    }
    size_t total_bits;
    if (__builtin_mul_overflow(tensor->count, bits, &total_bits)) {
        return tensor_error(report, tensor->name, "shape: the number of bits overflows");
    }
    if (total_bits % 8 != 0 || end - begin != total_bits / 8) {
        return tensor_error(report, tensor->name,
                            "data_offsets: [%" PRIu64 ", %" PRIu64 "]: %" PRIu64 " bytes, but shape and %s need %zu%s", begin, end,
                            end - begin, tensor->dtype_name, total_bits / 8, total_bits % 8 != 0 ? " and a part" : "");
    }
    tensor->data = data->data + begin;
    tensor->bytes = (size_t)(end - begin);
    return true;
}

/* Fills in a tensor from its entry {"dtype", "shape", "data_offsets"}; tensor->name is set already. */
static bool parse_tensor(const reporter *report, safetensors_tensor *tensor, json_t *entry, const files_mapping *data)
{
    if (!json_is_object(entry)) {
        return tensor_error(report, tensor->name, "must be an object");
    }
    const char *key;
    json_t *value;
    json_object_foreach (entry, key, value) {
        if (strcmp(key, "dtype") != 0 && strcmp(key, "shape") != 0 && strcmp(key, "data_offsets") != 0) {
            return tensor_error(report, tensor->name, "%.40s: unknown key", key);
        }
    }
    unsigned bits = 0;
    return parse_dtype(report, tensor, json_object_get(entry, "dtype"), &bits) &&
           parse_shape(report, tensor, json_object_get(entry, "shape")) &&
           parse_offsets(report, tensor, json_object_get(entry, "data_offsets"), data, bits);
}

static bool check_metadata(const reporter *report, json_t *metadata)
{
    bool ok = json_is_object(metadata);
    const char *key;
    json_t *value;
    json_object_foreach (metadata, key, value) {
        ok = ok && json_is_string(value);
    }
    return ok || files_error(report->error, report->error_size, "%s: %s: must be an object of strings", report->path, metadata_key);
}

static int by_offset(const void *left, const void *right)
{
    const safetensors_tensor *a = left;
    const safetensors_tensor *b = right;
    if (a->data != b->data) {
        return a->data < b->data ? -1 : 1;
    }
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const safetensors_tensor *)left)->name, ((const safetensors_tensor *)right)->name);
}

/* Checks that the tensors fill the data without overlaps and holes; leaves them in the order of their offsets. */
static bool check_cover(const reporter *report, safetensors_tensor *tensors, size_t count, const files_mapping *data)
{
    qsort(tensors, count, sizeof *tensors, by_offset);
    const unsigned char *end = data->data;
    for (size_t i = 0; i < count; ++i) {
        if (tensors[i].data < end) {
            return tensor_error(report, tensors[i].name, "data_offsets: overlaps tensor %.200s", tensors[i - 1].name);
        }
        if (tensors[i].data > end) {
            return tensor_error(report, tensors[i].name, "data_offsets: a hole of %td bytes before it", tensors[i].data - end);
        }
        end += tensors[i].bytes;
    }
    const ptrdiff_t left = data->data + data->bytes - end;
    return left == 0 || files_error(report->error, report->error_size, "%s: data: %td bytes after the last tensor", report->path, left);
}

/* Checks the header's length and JSON, and finds the data. */
static bool load_header(const reporter *report, const files_mapping *mapped, json_t **header, files_mapping *data)
{
    if (mapped->bytes < LENGTH_BYTES) {
        return files_error(report->error, report->error_size, "%s: %zu bytes: too short for a safetensors file", report->path,
                           mapped->bytes);
    }
    uint64_t length;
    memcpy(&length, mapped->data, LENGTH_BYTES);
    if (length == 0 || length > SAFETENSORS_MAX_HEADER) {
        return files_error(report->error, report->error_size, "%s: header: length %" PRIu64 ": must be from 1 to %d bytes", report->path,
                           length, SAFETENSORS_MAX_HEADER);
    }
    if (length > mapped->bytes - LENGTH_BYTES) {
        return files_error(report->error, report->error_size, "%s: header: length %" PRIu64 ": the file has only %zu bytes after it",
                           report->path, length, mapped->bytes - LENGTH_BYTES);
    }
    const char *const text = (const char *)mapped->data + LENGTH_BYTES;
    if (text[0] != '{') {
        return files_error(report->error, report->error_size, "%s: header: must start with '{'", report->path);
    }
    json_error_t reason;
    *header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &reason);
    if (*header == NULL) {
        return files_error(report->error, report->error_size, "%s: header: byte %d: %s", report->path, reason.position, reason.text);
    }
    *data = (files_mapping){mapped->data + LENGTH_BYTES + length, mapped->bytes - LENGTH_BYTES - (size_t)length};
    return true;
}

/* Fills in tensors and count of a file whose header is loaded; the tensors end in the order of their names. */
static bool parse_tensors(const reporter *report, safetensors *file, const files_mapping *data)
{
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
    if (file->tensors == NULL) {
        return files_error(report->error, report->error_size, "%s: out of memory", report->path);
    }
    const char *name;
    json_t *entry;
    json_object_foreach (file->header, name, entry) {
        if (strcmp(name, metadata_key) == 0) {
            if (!check_metadata(report, entry)) {
                return false;
            }
            continue;
        }
        safetensors_tensor *tensor = &file->tensors[file->count++];
        tensor->name = name;
        if (!parse_tensor(report, tensor, entry, data)) {
            return false;
        }
    }
    if (!check_cover(report, file->tensors, file->count, data)) {
        return false;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
    return true;
}

safetensors *safetensors_open(const char *path, char *error, size_t error_size)
{
    const reporter report = {path, error, error_size};
    files_mapping data = {NULL, 0};
    safetensors *file = calloc(1, sizeof *file);
    if (file == NULL || (file->path = strdup(path)) == NULL) {
        files_error(error, error_size, "%s: out of memory", path);
    } else if (files_map(path, &file->mapped, error, error_size) && load_header(&report, &file->mapped, &file->header, &data) &&
               parse_tensors(&report, file, &data)) {
        return file;
    }
    safetensors_close(file);
    return NULL;
}

void safetensors_close(safetensors *file)
{
    if (file == NULL) {
        return;
    }
    free(file->tensors);
    json_decref(file->header);
    files_unmap(&file->mapped);
    free(file->path);
    free(file);
}

/* ---- looking up ---- */

const char *safetensors_path(const safetensors *file)
{
    return file->path;
}

size_t safetensors_count(const safetensors *file)
{
    return file->count;
}

const safetensors_tensor *safetensors_at(const safetensors *file, size_t index)
{
    return &file->tensors[index];
}

const safetensors_tensor *safetensors_find(const safetensors *file, const char *name)
{
    const safetensors_tensor key = {.name = name};
    return file->count == 0 ? NULL : bsearch(&key, file->tensors, file->count, sizeof *file->tensors, by_name);
}

/* Whether one name is the other behind a prefix that ends in a dot. */
static bool differ_by_prefix(const char *a, size_t a_length, const char *b, size_t b_length)
{
    if (a_length < b_length) {
        return differ_by_prefix(b, b_length, a, a_length);
    }
    const char *tail = a + (a_length - b_length);
    return a_length > b_length && tail[-1] == '.' && strcmp(tail, b) == 0;
}

enum { LONGEST_COMPARED = 255 };

/* Insertions, deletions and substitutions that turn a into b; the lengths are at most LONGEST_COMPARED. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[LONGEST_COMPARED + 1]; /* row[j]: distance of the first i letters of a from the first j of b */
    for (size_t j = 0; j <= b_length; ++j) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a_length; ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; ++j) {
            const size_t above = row[j];
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            best = above + 1 < best ? above + 1 : best;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[b_length];
}

const char *safetensors_nearest(const safetensors *file, const char *name)
{
    const size_t length = strlen(name);
    const char *nearest = NULL;
    size_t allowed = length / 3 < 3 ? length / 3 : 3;
    for (size_t i = 0; i < file->count; ++i) {
        const char *other = file->tensors[i].name;
        const size_t other_length = strlen(other);
        if (differ_by_prefix(name, length, other, other_length)) {
            return other;
        }
        const size_t gap = length > other_length ? length - other_length : other_length - length;
        if (gap > allowed || length > LONGEST_COMPARED || other_length > LONGEST_COMPARED) {
            continue;
        }
        const size_t distance = edit_distance(name, length, other, other_length);
        if (distance < allowed || (distance == allowed && nearest == NULL)) {
            nearest = other;
            allowed = distance;
        }
    }
    return nearest;
}

/* "[2][4][8]" */
static void print_shape(char *text, size_t size, const int64_t *shape, int rank)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && used < size; ++i) {
        used += (size_t)snprintf(text + used, size - used, "[%" PRId64 "]", shape[i]);
    }
}

const safetensors_tensor *safetensors_expect(const safetensors *file, const char *prefix, const char *name, const int64_t *shape, int rank,
                                             char *error, size_t error_size)
{
    char full[1024], found[256], wanted[256];
    if ((size_t)snprintf(full, sizeof full, "%s%s", prefix, name) >= sizeof full) {
        files_error(error, error_size, "%s: %s: the prefix is too long", file->path, name);
        return NULL;
    }
    const safetensors_tensor *tensor = safetensors_find(file, full);
    if (tensor == NULL) {
        const char *near = safetensors_nearest(file, full);
        files_error(error, error_size, "%s: tensor %s is missing%s%s%s", file->path, full, near != NULL ? "; did you mean " : "",
                    near != NULL ? near : "", near != NULL ? "?" : "");
        return NULL;
    }
    if (shape != NULL && (tensor->rank != rank || memcmp(tensor->shape, shape, (size_t)rank * sizeof *shape) != 0)) {
        print_shape(found, sizeof found, tensor->shape, tensor->rank);
        print_shape(wanted, sizeof wanted, shape, rank);
        files_error(error, error_size, "%s: tensor %s: shape %s: must be %s", file->path, full, found, wanted);
        return NULL;
    }
    return tensor;
}

/* ---- reading values ---- */

static double double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double from_f32(const unsigned char *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof value);
    return (double)value;
}

static double from_bf16(const unsigned char *bytes)
{
    const unsigned char f32[4] = {0, 0, bytes[0], bytes[1]};
    return from_f32(f32);
}

/* IEEE 754 binary16: 1 bit sign, 5 bits exponent (bias 15), 10 bits fraction. */
static double from_f16(const unsigned char *bytes)
{
    const unsigned bits = bytes[0] | (unsigned)bytes[1] << 8;
    const unsigned exponent = bits >> 10 & 31;
    const unsigned fraction = bits & 1023;
    const uint64_t sign = (uint64_t)(bits >> 15) << 63;
    if (exponent == 0) {
        const double magnitude = (double)fraction * 0x1p-24;
        return sign != 0 ? -magnitude : magnitude;
    }
    const uint64_t wide_exponent = exponent == 31 ? 2047 : exponent - 15 + 1023;
    return double_from_bits(sign | wide_exponent << 52 | (uint64_t)fraction << 42);
}

bool safetensors_read(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, double *out, char *error,
                      size_t error_size)
{
    const reporter report = {file->path, error, error_size};
    if (tensor->dtype == DTYPE_UNREADABLE) {
        return tensor_error(&report, tensor->name, "dtype: %s: must be F32, F16, BF16 or F64", tensor->dtype_name);
    }
    if (first > tensor->count || count > tensor->count - first) {
        return tensor_error(&report, tensor->name, "elements from %zu, %zu of them: there are only %zu", first, count, tensor->count);
    }
    if (count == 0) {
        return true;
    }
    const size_t width = tensor->bytes / tensor->count;
    const unsigned char *data = tensor->data + first * width;
    switch (tensor->dtype) {
    case DTYPE_F32:
        for (size_t i = 0; i < count; ++i) {
            out[i] = from_f32(data + i * 4);
        }
        break;
    case DTYPE_F16:
        for (size_t i = 0; i < count; ++i) {
            out[i] = from_f16(data + i * 2);
        }
        break;
    case DTYPE_BF16:
        for (size_t i = 0; i < count; ++i) {
            out[i] = from_bf16(data + i * 2);
        }
        break;
    case DTYPE_F64: memcpy(out, data, count * sizeof *out); break;
    case DTYPE_UNREADABLE: break;
    }
    for (size_t i = 0; i < count; ++i) {
        if (!isfinite(out[i])) {
            const char *infinity = out[i] > 0 ? "inf" : "-inf";
            return tensor_error(&report, tensor->name, "element %zu: %s: must be finite", first + i, isnan(out[i]) ? "NaN" : infinity);
        }
    }
    return true;
}

double *safetensors_load(const safetensors *file, const safetensors_tensor *tensor, char *error, size_t error_size)
{
    double *values = NULL;
    if (tensor->count <= SIZE_MAX / sizeof *values) {
        values = malloc(tensor->count > 0 ? tensor->count * sizeof *values : 1);
    }
    if (values == NULL) {
        files_error(error, error_size, "%s: not enough memory", file->path);
    } else if (!safetensors_read(file, tensor, 0, tensor->count, values, error, error_size)) {
        free(values);
        values = NULL;
    }
    return values;
}

safetensors_dtype safetensors_dtype_named(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i) {
        if (strcmp(name, dtypes[i].name) == 0) {
            return dtypes[i].dtype;
        }
    }
    return DTYPE_UNREADABLE;
}

size_t safetensors_width(safetensors_dtype dtype)
{
    return dtypes[dtype].bits / 8;
}

void safetensors_release(const safetensors *file)
{
    madvise((void *)(uintptr_t)file->mapped.data, file->mapped.bytes, MADV_DONTNEED);
}

/* ---- writing ---- */

struct safetensors_writer {
    files_writer file;
    size_t missing; /* bytes still to come */
};

/* Adds a tensor to the header and moves end past it. */
static bool describe(const reporter *report, json_t *header, const safetensors_description *tensor, json_int_t *end)
{
    if (strcmp(tensor->name, metadata_key) == 0 || json_object_get(header, tensor->name) != NULL) {
        return tensor_error(report, tensor->name, "the name is taken");
    }
    if (tensor->rank < 0 || tensor->rank > SAFETENSORS_MAX_RANK) {
        return tensor_error(report, tensor->name, "shape: %d dimensions: must be from 0 to %d", tensor->rank, SAFETENSORS_MAX_RANK);
    }
    json_t *shape = json_array();
    const json_int_t begin = *end;
    json_int_t bytes = (json_int_t)safetensors_width(tensor->dtype);
    bool legal = true;
    for (int i = 0; i < tensor->rank; ++i) {
        legal = legal && tensor->shape[i] >= 0 && !__builtin_mul_overflow(bytes, tensor->shape[i], &bytes);
        json_array_append_new(shape, json_integer(tensor->shape[i]));
    }
    if (!legal || __builtin_add_overflow(begin, bytes, end)) {
        json_decref(shape);
        return tensor_error(report, tensor->name, "shape: negative or too large");
    }
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtypes[tensor->dtype].name, "shape", shape, "data_offsets", begin, *end);
    if (json_object_set_new(header, tensor->name, entry) != 0) {
        return tensor_error(report, tensor->name, "the name must be UTF-8");
    }
    return true;
}

/* The bytes in front of the data, their number in *bytes and that of the data's in *data_bytes; from malloc. */
static char *make_header(const reporter *report, const safetensors_description *tensors, size_t count, size_t *bytes, size_t *data_bytes)
{
    json_t *header = json_object();
    json_int_t end = 0;
    bool ok = true;
    for (size_t i = 0; i < count && ok; ++i) {
        ok = describe(report, header, &tensors[i], &end);
    }
    char *front = NULL;
    if (ok) {
        const size_t flags = JSON_COMPACT; /* keys stay in the order of insertion */
        const size_t used = json_dumpb(header, NULL, 0, flags);
        const uint64_t length = (used + 7) / 8 * 8;
        front = used == 0 || length > SAFETENSORS_MAX_HEADER ? NULL : malloc(LENGTH_BYTES + length);
        if (front == NULL) {
            files_error(report->error, report->error_size, "%s: header: too large", report->path);
        } else {
            memcpy(front, &length, LENGTH_BYTES);
            memset(front + LENGTH_BYTES, ' ', length);
            json_dumpb(header, front + LENGTH_BYTES, used, flags);
            *bytes = LENGTH_BYTES + (size_t)length;
            *data_bytes = (size_t)end;
        }
    }
    json_decref(header);
    return front;
}

safetensors_writer *safetensors_create(const char *path, const safetensors_description *tensors, size_t count, char *error,
                                       size_t error_size)
{
    const reporter report = {path, error, error_size};
    size_t bytes = 0;
    size_t data_bytes = 0;
    char *front = make_header(&report, tensors, count, &bytes, &data_bytes);
    if (front == NULL) {
        return NULL;
    }
    safetensors_writer *writer = malloc(sizeof *writer);
    if (writer == NULL) {
        files_error(error, error_size, "%s: out of memory", path);
    } else if (!files_create(&writer->file, path, error, error_size)) {
        free(writer);
        writer = NULL;
    } else if (!files_append(&writer->file, front, bytes, error, error_size)) {
        safetensors_abandon(writer);
        writer = NULL;
    } else {
        writer->missing = data_bytes;
    }
    free(front);
    return writer;
}

bool safetensors_append(safetensors_writer *writer, const void *data, size_t bytes, char *error, size_t error_size)
{
    if (bytes > writer->missing) {
        return files_error(error, error_size, "%s: %zu bytes more than its tensors hold", writer->file.path, bytes - writer->missing);
    }
    writer->missing -= bytes;
    return files_append(&writer->file, data, bytes, error, error_size);
}

size_t safetensors_missing(const safetensors_writer *writer)
{
    return writer->missing;
}

bool safetensors_finish(safetensors_writer *writer, char *error, size_t error_size)
{
    bool ok;
    if (writer->missing > 0) {
        ok = files_error(error, error_size, "%s: %zu bytes of its tensors were never written", writer->file.path, writer->missing);
        files_discard(&writer->file);
    } else {
        ok = files_finish(&writer->file, error, error_size);
    }
    free(writer);
    return ok;
}

void safetensors_abandon(safetensors_writer *writer)
{
    if (writer != NULL) {
        files_discard(&writer->file);
        free(writer);
    }
}
