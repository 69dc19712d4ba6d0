/* Tensors in the safetensors format: a reader that trusts nothing in the file, and a writer that streams. */
#include "gen/weights/safetensors.h"

#include "gen/host/files.h"
#include "gen/weights/gguf.h"
#include "gen/weights/gguf_blocks.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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
    {"I8", 8, DTYPE_I8},
    {"U8", 8, DTYPE_I4},
    {"BOOL", 8, DTYPE_UNREADABLE},
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
    files_source source;
    json_t *header;              /* owns the names */
    gguf gguf;                   /* or this does, with the tensors */
    safetensors_tensor *tensors; /* [count], in the order of names */
    size_t count;
    size_t scales; /* that are no tensors, behind these, in the order of names */
};

/* A part of the file. */
typedef struct {
    size_t at, bytes;
} extent;

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

static bool parse_offsets(const reporter *report, safetensors_tensor *tensor, const json_t *value, const extent *data, unsigned bits)
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
    tensor->at = data->at + (size_t)begin;
    tensor->bytes = (size_t)(end - begin);
    return true;
}

/* Fills in a tensor from its entry {"dtype", "shape", "data_offsets"}; tensor->name is set already. */
static bool parse_tensor(const reporter *report, safetensors_tensor *tensor, json_t *entry, const extent *data)
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
    if (a->at != b->at) {
        return a->at < b->at ? -1 : 1;
    }
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const safetensors_tensor *)left)->name, ((const safetensors_tensor *)right)->name);
}

/* Checks that the tensors fill the data without overlaps and holes; leaves them in the order of their offsets. */
static bool check_cover(const reporter *report, safetensors_tensor *tensors, size_t count, const extent *data)
{
    qsort(tensors, count, sizeof *tensors, by_offset);
    size_t end = data->at;
    for (size_t i = 0; i < count; ++i) {
        if (tensors[i].at < end) {
            return tensor_error(report, tensors[i].name, "data_offsets: overlaps tensor %.200s", tensors[i - 1].name);
        }
        if (tensors[i].at > end) {
            return tensor_error(report, tensors[i].name, "data_offsets: a hole of %zu bytes before it", tensors[i].at - end);
        }
        end += tensors[i].bytes;
    }
    const size_t left = data->at + data->bytes - end;
    return left == 0 || files_error(report->error, report->error_size, "%s: data: %zu bytes after the last tensor", report->path, left);
}

/* What is given instead of safetensors, by its first bytes; and how to convert it. */
static const struct {
    const char *start;
    size_t bytes;
    const char *is;
    bool pytorch;
} others[] = {
    {"PK\3\4", 4, "a ZIP file, as PyTorch checkpoints are", true},
    {"\x80\2\x8a\x0al\xfc\x9c\x46", 8, "a PyTorch checkpoint", true}, /* before 1.6, a pickle that starts with a magic number */
    {"\x80\2", 2, "a pickle, perhaps a PyTorch checkpoint", true},
    {"\x80\3", 2, "a pickle, perhaps a PyTorch checkpoint", true},
    {"\x80\4", 2, "a pickle, perhaps a PyTorch checkpoint", true},
    {"\x80\5", 2, "a pickle, perhaps a PyTorch checkpoint", true},
    {"\x89HDF\r\n\x1a\n", 8, "an HDF5 file", false},
    {"\x93NUMPY", 6, "a NumPy array", false},
    {"LOOKUPC\0", 8, "a blob of lookupc pack: give the checkpoint that it was packed from", false},
    {"version https://git-lfs", 23, "the pointer of Git LFS to a file: fetch that with git lfs pull", false},
};

static bool has_ending(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcmp(path + length - tail, end) == 0;
}

/* One line about a file that is not in the format: what it is instead, by its first bytes or else by its name; or else that of `rule`. */
static bool __attribute__((format(printf, 3, 4))) not_the_format(const reporter *report, const files_source *source, const char *rule, ...)
{
    char start[32] = "", ignored[1];
    const size_t bytes = source->bytes < sizeof start ? source->bytes : sizeof start;
    const char *is = NULL;
    bool pytorch = false;
    for (size_t i = 0; is == NULL && files_pread(source, 0, start, bytes, ignored, sizeof ignored) && i < sizeof others / sizeof *others;
         ++i) {
        if (bytes >= others[i].bytes && memcmp(start, others[i].start, others[i].bytes) == 0) {
            is = others[i].is;
            pytorch = others[i].pytorch;
        }
    }
    static const char *const endings[] = {".bin", ".ckpt", ".pt", ".pth"};
    for (size_t i = 0; is == NULL && i < sizeof endings / sizeof *endings; ++i) {
        if (has_ending(report->path, endings[i])) {
            is = "by its name a PyTorch checkpoint";
            pytorch = true;
        }
    }
    if (is == NULL) {
        char line[320];
        va_list arguments;
        va_start(arguments, rule);
        vsnprintf(line, sizeof line, rule, arguments);
        va_end(arguments);
        return files_error(report->error, report->error_size, "%s: %s", report->path, line);
    }
    if (!pytorch)
        return files_error(report->error, report->error_size, "%s: is not a safetensors file but %s", report->path, is);
    const char *name = strpbrk(report->path, "'\"\\$`") == NULL ? report->path : "FILE";
    return files_error(
        report->error, report->error_size,
        "%s: is not a safetensors file but %s; convert it with Python: import torch; from safetensors.torch import save_file; "
        "t = torch.load('%s', map_location='cpu', weights_only=True); t = t.get('state_dict', t); "
        "save_file({k: v.clone().contiguous() for k, v in t.items() if torch.is_tensor(v)}, 'model.safetensors')",
        report->path, is, name);
}

/* Checks the header's length and JSON, and finds the data. */
static bool load_header(const reporter *report, const files_source *source, json_t **header, extent *data)
{
    if (source->bytes < LENGTH_BYTES) {
        return not_the_format(report, source, "%zu bytes: too short for a safetensors file", source->bytes);
    }
    uint64_t length;
    if (!files_pread(source, 0, &length, LENGTH_BYTES, report->error, report->error_size)) {
        return false;
    }
    if (length == 0 || length > SAFETENSORS_MAX_HEADER) {
        return not_the_format(report, source, "header: length %" PRIu64 ": must be from 1 to %d bytes", length, SAFETENSORS_MAX_HEADER);
    }
    if (length > source->bytes - LENGTH_BYTES) {
        return not_the_format(report, source, "header: length %" PRIu64 ": the file has only %zu bytes after it", length,
                              source->bytes - LENGTH_BYTES);
    }
    char *text = malloc((size_t)length);
    if (text == NULL) {
        return files_error(report->error, report->error_size, "%s: out of memory", report->path);
    }
    bool good = files_pread(source, LENGTH_BYTES, text, (size_t)length, report->error, report->error_size);
    if (good && text[0] != '{') {
        good = not_the_format(report, source, "header: must start with '{'");
    } else if (good) {
        json_error_t reason;
        *header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &reason);
        good = *header != NULL ||
               files_error(report->error, report->error_size, "%s: header: byte %d: %s", report->path, reason.position, reason.text);
    }
    free(text);
    *data = (extent){LENGTH_BYTES + (size_t)length, source->bytes - LENGTH_BYTES - (size_t)length};
    return good;
}

/* Fills in tensors and count of a file whose header is loaded; the tensors end in the order of their names. */
static bool parse_tensors(const reporter *report, safetensors *file, const extent *data)
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

/* "[2][4][8]" */
static void print_shape(char *text, size_t size, const int64_t *shape, int rank)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && used < size; ++i) {
        used += (size_t)snprintf(text + used, size - used, "[%" PRId64 "]", shape[i]);
    }
}

/* Elements of a tensor that have a scale in common: those of its last dimension. */
static size_t row_of(const safetensors_tensor *tensor)
{
    return tensor->rank > 0 ? (size_t)tensor->shape[tensor->rank - 1] : 1;
}

/* The tensor whose name is that of `tensor` with `ending`; NULL: there is none. */
static const safetensors_tensor *named_after(const safetensors *file, const safetensors_tensor *tensor, const char *ending)
{
    char name[1024];
    const int length = snprintf(name, sizeof name, "%s%s", tensor->name, ending);
    return length > 0 && (size_t)length < sizeof name ? safetensors_find(file, name) : NULL;
}

/* Whether scales with a name that only lookupc gives, if they are there, have that dtype; else one line. */
static bool scales_are(const reporter *report, const safetensors_tensor *scales, safetensors_dtype dtype, const safetensors_tensor *tensor)
{
    return scales == NULL || scales->dtype == dtype ||
           tensor_error(report, scales->name, "dtype: %s: must be %s, the scales of %.200s", scales->dtype_name, dtypes[dtype].name,
                        tensor->name);
}

/* The scales of the rows of a tensor, whose name ends so; NULL: there are none, and it cannot be read. False with one line for others than
   it needs. */
static bool row_scales(const reporter *report, const safetensors *file, safetensors_tensor *tensor, const char *ending,
                       const safetensors_tensor **scales)
{
    const size_t rows = tensor->count > 0 ? tensor->count / row_of(tensor) : 0;
    *scales = named_after(file, tensor, ending);
    if (tensor->dtype == DTYPE_I4 && !scales_are(report, *scales, DTYPE_F32, tensor)) {
        return false;
    }
    if (*scales == NULL || (*scales)->dtype != DTYPE_F32) {
        *scales = NULL;
        tensor->dtype = DTYPE_UNREADABLE;
        return true;
    }
    return (*scales)->count == rows || tensor_error(report, (*scales)->name, "%zu elements: must be %zu, one for each row of %.200s",
                                                    (*scales)->count, rows, tensor->name);
}

/* Makes a tensor one of that dtype, in I4 of twice as many elements. */
static bool unfold(const reporter *report, safetensors_tensor *tensor, safetensors_dtype dtype)
{
    const bool halves = tensor->dtype == DTYPE_I4;
    int64_t *const last = &tensor->shape[tensor->rank > 0 ? tensor->rank - 1 : 0];
    if (tensor->rank == 0 || __builtin_mul_overflow(*last, halves ? 2 : 1, last) ||
        __builtin_mul_overflow(tensor->count, halves ? 2u : 1u, &tensor->count) ||
        __builtin_mul_overflow(tensor->count, safetensors_width(dtype), &tensor->bytes)) {
        return tensor_error(report, tensor->name, "shape: has no rows, or too many elements");
    }
    tensor->halves = halves;
    tensor->dtype = dtype;
    tensor->dtype_name = dtypes[dtype].name;
    return true;
}

static size_t groups_of(size_t width)
{
    return width / SAFETENSORS_GROUP + (width % SAFETENSORS_GROUP != 0);
}

/* The same of the groups of a tensor in I4 or I8, which becomes one in F32. */
static bool group_scales(const reporter *report, const safetensors *file, safetensors_tensor *tensor, const safetensors_tensor **scales)
{
    const bool bytes = tensor->dtype == DTYPE_I8;
    const safetensors_tensor *const with_minimum = bytes ? NULL : named_after(file, tensor, SAFETENSORS_GROUPS_U4);
    *scales = with_minimum != NULL ? with_minimum : named_after(file, tensor, bytes ? SAFETENSORS_GROUPS_Q8 : SAFETENSORS_GROUPS_I4);
    if (*scales == NULL) {
        tensor->dtype = DTYPE_UNREADABLE;
        return true;
    }
    if (!scales_are(report, *scales, DTYPE_F16, tensor)) {
        return false;
    }
    if (!unfold(report, tensor, DTYPE_F32)) {
        return false;
    }
    const size_t rows = tensor->count > 0 ? tensor->count / row_of(tensor) : 0;
    const size_t wanted = rows * groups_of(row_of(tensor)) * (with_minimum != NULL ? 2 : 1);
    tensor->blocks = gguf_blocks_of(bytes ? GGUF_Q8_0 : with_minimum != NULL ? GGUF_Q4_1 : GGUF_Q4_0);
    return (*scales)->count == wanted ||
           tensor_error(report, (*scales)->name, "%zu elements: must be %zu, for each group of %d values of %.200s", (*scales)->count,
                        wanted, SAFETENSORS_GROUP, tensor->name);
}

static int64_t blocks_of(int64_t size)
{
    return size / SAFETENSORS_BLOCK + (size % SAFETENSORS_BLOCK != 0);
}

/* The same of the blocks of a matrix in F8_E4M3. */
static bool block_scales(const reporter *report, const safetensors *file, safetensors_tensor *tensor, const safetensors_tensor **scales)
{
    *scales = named_after(file, tensor, SAFETENSORS_BLOCK_SCALE);
    if (*scales == NULL || tensor->rank != 2 || ((*scales)->dtype != DTYPE_F32 && (*scales)->dtype != DTYPE_BF16)) {
        *scales = NULL;
        return true;
    }
    const int64_t wanted[2] = {blocks_of(tensor->shape[0]), blocks_of(tensor->shape[1])};
    if ((*scales)->rank != 2 || memcmp((*scales)->shape, wanted, sizeof wanted) != 0) {
        char found[256];
        print_shape(found, sizeof found, (*scales)->shape, (*scales)->rank);
        return tensor_error(report, (*scales)->name, "shape %s: must be [%" PRId64 "][%" PRId64 "], one for each %d x %d values of %.100s",
                            found, wanted[0], wanted[1], SAFETENSORS_BLOCK, SAFETENSORS_BLOCK, tensor->name);
    }
    if (__builtin_mul_overflow(tensor->count, sizeof(float), &tensor->bytes)) {
        return tensor_error(report, tensor->name, "shape: the number of bytes overflows");
    }
    tensor->fp8 = true;
    tensor->dtype = DTYPE_F32;
    tensor->dtype_name = dtypes[DTYPE_F32].name;
    return true;
}

/* Moves the tensors that are `taken` behind the others; both keep their order. False: out of memory. */
static bool move_behind(safetensors *file, const bool *taken)
{
    safetensors_tensor *const all = malloc((file->count + 1) * sizeof *all);
    if (all == NULL) {
        return false;
    }
    size_t kept = 0;
    for (int behind = 0; behind < 2; ++behind) {
        for (size_t i = 0; i < file->count; ++i) {
            if (taken[i] == (behind != 0)) {
                all[kept++] = file->tensors[i];
            }
        }
        file->scales += behind == 0 ? file->count - kept : 0;
    }
    file->count -= file->scales;
    free(file->tensors);
    file->tensors = all;
    return true;
}

/* Gives each tensor in I8, FP8 or half bytes its scales, which are no tensors of the file from then on. */
static bool take_scales(const reporter *report, safetensors *file)
{
    bool *const taken = calloc(file->count + 1, sizeof *taken);
    bool good = taken != NULL || files_error(report->error, report->error_size, "%s: out of memory", report->path);
    for (size_t i = 0; good && i < file->count; ++i) {
        safetensors_tensor *const tensor = &file->tensors[i];
        const safetensors_tensor *scales = NULL;
        if (tensor->dtype == DTYPE_I8) {
            good = named_after(file, tensor, SAFETENSORS_GROUPS_Q8) != NULL ? group_scales(report, file, tensor, &scales)
                                                                            : row_scales(report, file, tensor, SAFETENSORS_SCALE, &scales);
        } else if (tensor->dtype == DTYPE_I4) {
            good = named_after(file, tensor, SAFETENSORS_HALF_SCALE) == NULL
                       ? group_scales(report, file, tensor, &scales)
                       : row_scales(report, file, tensor, SAFETENSORS_HALF_SCALE, &scales) &&
                             (scales == NULL || unfold(report, tensor, DTYPE_I8));
        } else if (strcmp(tensor->dtype_name, "F8_E4M3") == 0) {
            good = block_scales(report, file, tensor, &scales);
        }
        if (good && scales != NULL) {
            tensor->scales_at = scales->at;
            tensor->scales = scales->dtype;
            taken[scales - file->tensors] = true;
        }
    }
    if (good && !(good = move_behind(file, taken))) {
        files_error(report->error, report->error_size, "%s: out of memory", report->path);
    }
    free(taken);
    return good;
}

/* Reads and checks all but the values of an open file. */
static bool load(const reporter *report, safetensors *file)
{
    extent data = {0, 0};
    if (!gguf_claims(&file->source)) {
        return load_header(report, &file->source, &file->header, &data) && parse_tensors(report, file, &data) && take_scales(report, file);
    }
    const bool good = gguf_open(&file->source, &file->gguf, report->error, report->error_size);
    file->tensors = file->gguf.tensors;
    file->count = file->gguf.count;
    return good;
}

safetensors *safetensors_open(const char *path, char *error, size_t error_size)
{
    const reporter report = {path, error, error_size};
    safetensors *file = calloc(1, sizeof *file);
    if (file == NULL || (file->path = strdup(path)) == NULL) {
        files_error(error, error_size, "%s: out of memory", path);
        free(file);
        return NULL;
    }
    if (files_open(file->path, &file->source, error, error_size) && load(&report, file)) {
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
    if (file->gguf.header == NULL)
        free(file->tensors);
    gguf_close(&file->gguf);
    json_decref(file->header);
    files_close(&file->source);
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

bool safetensors_has_scales(const safetensors *file, const char *name)
{
    const safetensors_tensor key = {.name = name};
    return file->scales > 0 && bsearch(&key, file->tensors + file->count, file->scales, sizeof *file->tensors, by_name) != NULL;
}

void safetensors_offer(const safetensors *file, nearest *search)
{
    for (size_t i = 0; i < file->count; ++i)
        nearest_offer(search, file->tensors[i].name);
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
        nearest search = {.wanted = full};
        safetensors_offer(file, &search);
        nearest_missing(&search, file->path, error, error_size);
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
double safetensors_from_f16(const unsigned char *bytes)
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

/* Whether those elements are there and of a dtype that can be read. */
static bool can_read(const reporter *report, const safetensors_tensor *tensor, size_t first, size_t count)
{
    if (tensor->dtype == DTYPE_UNREADABLE) {
        const bool i8 = strcmp(tensor->dtype_name, "I8") == 0, fp8 = strncmp(tensor->dtype_name, "F8_", 3) == 0;
        const bool blocks = strcmp(tensor->dtype_name, "F8_E4M3") == 0 && tensor->rank == 2;
        return tensor_error(report, tensor->name, "dtype: %s%s: must be F32, F16, BF16 or F64%s%s", tensor->dtype_name,
                            fp8 ? ", which is FP8" : "",
                            i8       ? ", or stand beside its rows' scales, NAME" SAFETENSORS_SCALE " in F32"
                            : blocks ? ", or stand beside its blocks' scales, NAME" SAFETENSORS_BLOCK_SCALE " in F32 or BF16, in one file"
                                     : "",
                            fp8 ? "; take the checkpoint that it was made from" : "");
    }
    return (first <= tensor->count && count <= tensor->count - first) ||
           tensor_error(report, tensor->name, "elements from %zu, %zu of them: there are only %zu", first, count, tensor->count);
}

/* Sign, 4 bits of exponent with a bias of 7, 3 of fraction; all ones: NaN, and no infinity. */
static float from_e4m3(unsigned char bits)
{
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const float magnitude = exponent == 0 ? ldexpf((float)fraction, -9) : ldexpf((float)(8 + fraction), exponent - 10);
    return (bits & 127) == 127 ? NAN : bits < 128 ? magnitude : -magnitude;
}

/* out[count] <- floats of elements from `first` on of a matrix in FP8. */
static bool read_fp8(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, unsigned char *out, char *error,
                     size_t error_size)
{
    enum { MOST = 256 };
    /* its bytes go to the end of out, where no float reaches one that is not converted yet */
    const unsigned char *const bytes = out + count * 3;
    const size_t width = (size_t)tensor->shape[1], across = (size_t)blocks_of(tensor->shape[1]), size = safetensors_width(tensor->scales);
    const size_t all = across * (size_t)blocks_of(tensor->shape[0]);
    unsigned char scales[MOST * sizeof(float)];
    size_t loaded = 0, end = 0; /* scales of blocks loaded ... end - 1 */
    if (!files_pread(&file->source, tensor->at + first, out + count * 3, count, error, error_size)) {
        return false;
    }
    for (size_t i = 0; i < count; ++i) {
        const size_t row = (first + i) / width, column = (first + i) % width;
        const size_t block = row / SAFETENSORS_BLOCK * across + column / SAFETENSORS_BLOCK;
        if (block < loaded || block >= end) {
            loaded = block;
            end = block + (all - block < MOST ? all - block : MOST);
            if (!files_pread(&file->source, tensor->scales_at + loaded * size, scales, (end - loaded) * size, error, error_size)) {
                return false;
            }
        }
        const unsigned char *const scale = scales + (block - loaded) * size;
        const float value = from_e4m3(bytes[i]) * (float)(tensor->scales == DTYPE_F32 ? from_f32(scale) : from_bf16(scale));
        memcpy(out + i * sizeof value, &value, sizeof value);
    }
    return true;
}

/* out[count] <- elements from `first` on of a tensor in half bytes. */
static bool read_halves(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, unsigned char *out,
                        char *error, size_t error_size)
{
    /* their bytes go to the end of out, where no element reaches one that is not taken apart yet */
    const size_t from = first / 2, bytes = count > 0 ? (first + count - 1) / 2 - from + 1 : 0;
    const unsigned char *const data = out + count - bytes;
    if (!files_pread(&file->source, tensor->at + from, out + count - bytes, bytes, error, error_size)) {
        return false;
    }
    for (size_t i = 0; i < count; ++i) {
        const unsigned half = data[(first + i) / 2 - from] >> (first + i) % 2 * 4 & 15u;
        out[i] = (unsigned char)(half < 8 ? half : half + 240);
    }
    return true;
}

enum { MOST_GROUPS = 64, MOST_GROUP_BYTES = 34 }; /* that are read at a time; of one as a block */

/* Whether a tensor in blocks has their scales apart, as no GGUF file has. */
static bool in_groups(const safetensors_tensor *tensor)
{
    return tensor->scales_at > 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* `count` groups, at most MOST_GROUPS, from number `first` on of a row of a tensor. */
typedef struct {
    size_t row, first, count;
} group_range;

/* out[] <- groups of a tensor in groups, as blocks of a GGUF file. */
static bool read_groups(const safetensors *file, const safetensors_tensor *tensor, group_range of, unsigned char *out, char *error,
                        size_t error_size)
{
    enum { HALF = SAFETENSORS_GROUP / 2 };
    const size_t part = tensor->halves ? 2 : 1, own = SAFETENSORS_GROUP / part; /* bytes of integers */
    const size_t size = tensor->blocks->bytes, before = size - own, width = row_of(tensor), at = of.row * groups_of(width) + of.first;
    const unsigned flip = before == 2 ? 8 : 0; /* a block has integers that are 8 more, without a sign */
    unsigned char integers[MOST_GROUPS * SAFETENSORS_GROUP] = {0}, scales[MOST_GROUPS * 4];
    const size_t bytes = least(of.count * own, width / part - of.first * own);
    if (!files_pread(&file->source, tensor->at + of.row * (width / part) + of.first * own, integers, bytes, error, error_size) ||
        !files_pread(&file->source, tensor->scales_at + at * before, scales, of.count * before, error, error_size)) {
        return false;
    }
    for (size_t g = 0; g < of.count; ++g, out += size) {
        memcpy(out, scales + g * before, before);
        memcpy(out + before, integers + g * own, own);
        if (!tensor->halves)
            continue;
        memset(out + before, 0, HALF);
        for (size_t i = 0; i < SAFETENSORS_GROUP; ++i) {
            const unsigned half = integers[g * HALF + i / 2] >> i % 2 * 4 & 15u;
            out[before + i % HALF] |= (unsigned char)((half ^ flip) << i / HALF * 4);
        }
    }
    return true;
}

/* out[count] <- floats of elements from `first` on of a tensor in groups. */
static bool read_values_of_groups(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, unsigned char *out,
                                  char *error, size_t error_size)
{
    const size_t width = row_of(tensor);
    unsigned char blocks[MOST_GROUPS * MOST_GROUP_BYTES];
    float values[MOST_GROUPS * SAFETENSORS_GROUP];
    for (size_t done = 0, some; done < count; done += some) {
        const size_t row = (first + done) / width, column = (first + done) % width, group = column / SAFETENSORS_GROUP;
        const size_t most = (group + MOST_GROUPS) * SAFETENSORS_GROUP - column;
        some = least(least(width - column, count - done), most);
        const size_t groups = groups_of(column + some) - group;
        if (!read_groups(file, tensor, (group_range){row, group, groups}, blocks, error, error_size)) {
            return false;
        }
        for (size_t g = 0; g < groups; ++g) {
            tensor->blocks->decode(blocks + g * tensor->blocks->bytes, values + g * SAFETENSORS_GROUP);
        }
        memcpy(out + done * sizeof *values, values + column % SAFETENSORS_GROUP, some * sizeof *values);
    }
    return true;
}

bool safetensors_read_bytes(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, void *out, char *error,
                            size_t error_size)
{
    const reporter report = {file->path, error, error_size};
    if (!can_read(&report, tensor, first, count)) {
        return false;
    }
    if (tensor->blocks != NULL) {
        return in_groups(tensor) ? read_values_of_groups(file, tensor, first, count, out, error, error_size)
                                 : gguf_read(&file->source, tensor, first, count, out, error, error_size);
    }
    if (tensor->fp8) {
        return read_fp8(file, tensor, first, count, out, error, error_size);
    }
    if (tensor->halves) {
        return read_halves(file, tensor, first, count, out, error, error_size);
    }
    const size_t width = safetensors_width(tensor->dtype);
    return files_pread(&file->source, tensor->at + first * width, out, count * width, error, error_size);
}

const char *safetensors_blocks_name(const safetensors_tensor *tensor)
{
    return tensor->blocks != NULL ? tensor->blocks->name : NULL;
}

bool safetensors_read_blocks(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, unsigned char *out,
                             char *error, size_t error_size)
{
    const reporter report = {file->path, error, error_size};
    const size_t elements = tensor->blocks->elements, width = row_of(tensor), groups = groups_of(width);
    if (!can_read(&report, tensor, first, count)) {
        return false;
    }
    if (!in_groups(tensor)) {
        return gguf_read_blocks(&file->source, tensor, first / elements, count / elements, out, error, error_size);
    }
    for (size_t row = first / width; row < (first + count) / width; ++row) {
        for (size_t g = 0, some; g < groups; g += some, out += some * tensor->blocks->bytes) {
            some = least(groups - g, MOST_GROUPS);
            if (!read_groups(file, tensor, (group_range){row, g, some}, out, error, error_size)) {
                return false;
            }
        }
    }
    return true;
}

/* out[count] <- elements from `first` on of a tensor in I8, whose integers stand at the end of out: each times its row's scale. */
static bool read_i8(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, double *out, char *error,
                    size_t error_size)
{
    enum { MOST = 256 };
    float scales[MOST];
    const unsigned char *const integers = (unsigned char *)out + count * (sizeof *out - 1);
    const size_t width = row_of(tensor);
    size_t loaded = 0, end = 0; /* scales of rows loaded ... end - 1 */
    for (size_t i = 0; i < count; ++i) {
        const size_t row = (first + i) / width;
        if (row >= end) {
            const size_t left = (first + count - 1) / width + 1 - row;
            loaded = row;
            end = row + (left < MOST ? left : MOST);
            if (!files_pread(&file->source, tensor->scales_at + loaded * sizeof *scales, scales, (end - loaded) * sizeof *scales, error,
                             error_size)) {
                return false;
            }
        }
        const int integer = integers[i] < 128 ? integers[i] : integers[i] - 256;
        out[i] = (double)integer * (double)scales[row - loaded];
    }
    return true;
}

bool safetensors_read(const safetensors *file, const safetensors_tensor *tensor, size_t first, size_t count, double *out, char *error,
                      size_t error_size)
{
    const reporter report = {file->path, error, error_size};
    if (!can_read(&report, tensor, first, count)) {
        return false;
    }
    /* The bytes go to the end of out, where no out[i] reaches an element behind element i: they are converted in place. */
    unsigned char *const data = (unsigned char *)out + count * (sizeof *out - safetensors_width(tensor->dtype));
    if (!safetensors_read_bytes(file, tensor, first, count, data, error, error_size)) {
        return false;
    }
    switch (tensor->dtype) {
    case DTYPE_F32:
        for (size_t i = 0; i < count; ++i) {
            out[i] = from_f32(data + i * 4);
        }
        break;
    case DTYPE_F16:
        for (size_t i = 0; i < count; ++i) {
            out[i] = safetensors_from_f16(data + i * 2);
        }
        break;
    case DTYPE_BF16:
        for (size_t i = 0; i < count; ++i) {
            out[i] = from_bf16(data + i * 2);
        }
        break;
    case DTYPE_I8:
        if (!read_i8(file, tensor, first, count, out, error, error_size)) {
            return false;
        }
        break;
    case DTYPE_F64:
    case DTYPE_I4:
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
        const int64_t size = tensor->dtype == DTYPE_I4 && i + 1 == tensor->rank ? tensor->shape[i] / 2 : tensor->shape[i];
        legal = legal && size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes);
        json_array_append_new(shape, json_integer(size));
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
