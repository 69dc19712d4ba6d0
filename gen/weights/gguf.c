/* GGUF files, version 2 and 3: metadata and tensors, read by code that trusts nothing in the file. */
#include "gen/weights/gguf.h"

#include "gen/weights/gguf_blocks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A file is, one field behind the other without padding and little-endian,

       "GGUF"   version   tensors   entries   entries                        tensors                             data
       4 bytes  u32       u64       u64       key, type (u32), value         name, rank (u32), dimensions        from a multiple of the
                                                                             (u64, last one first), type (u32),  alignment on
                                                                             offset in the data (u64)

   where a key and a name are a length (u64) and that many bytes. */
enum { FIRST_VERSION = 2, LAST_VERSION = 3, MAX_RANK = 4, USUAL_ALIGNMENT = 32, LOADED_AT_ONCE = 1 << 20 };
enum { LEAST_ENTRY = 8 + 1 + 4 + 1, LEAST_TENSOR = 8 + 1 + 4 + 4 + 8 }; /* bytes */

static const unsigned char widths[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* The types of tensors that are no blocks. */
static const struct {
    uint32_t number;
    safetensors_dtype dtype;
    const char *name;
} plain[] = {{0, DTYPE_F32, "F32"}, {1, DTYPE_F16, "F16"}, {28, DTYPE_F64, "F64"}, {30, DTYPE_BF16, "BF16"}};

/* All other types that are in use, or have been: they are not read. */
static const struct {
    uint32_t number;
    const char *name;
} unread[] = {
    {4, "Q4_2"},   {5, "Q4_3"},        {9, "Q8_1"},        {15, "Q8_K"},       {16, "IQ2_XXS"},  {17, "IQ2_XS"},   {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"},     {21, "IQ3_S"},      {22, "IQ2_S"},      {23, "IQ4_XS"},   {24, "I8"},       {25, "I16"},
    {26, "I32"},   {27, "I64"},        {29, "IQ1_M"},      {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"}, {33, "Q4_0_8_8"}, {34, "TQ1_0"},
    {35, "TQ2_0"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {39, "MXFP4"},    {40, "NVFP4"},
};

/* The header while it is read. */
typedef struct {
    const files_source *source;
    unsigned char *bytes;    /* [most] */
    size_t most, loaded, at; /* bytes that a header may have here, that are in memory, that have been read */
    char *error;
    size_t error_size;
} cursor;

static bool __attribute__((format(printf, 2, 3))) fail(const cursor *c, const char *format, ...)
{
    char rule[1400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rule, sizeof rule, format, arguments);
    va_end(arguments);
    return files_error(c->error, c->error_size, "%s: %s", c->source->path, rule);
}

/* Moves on over the next `bytes`, which are in memory then; `what` they are. */
static const unsigned char *take(cursor *c, uint64_t bytes, const char *what)
{
    if (bytes > c->most - c->at) {
        if (c->most < c->source->bytes)
            fail(c, "%.200s: a header of more than %d bytes", what, GGUF_MAX_HEADER);
        else
            fail(c, "%.200s: %" PRIu64 " bytes: the file has only %zu more", what, bytes, c->most - c->at);
        return NULL;
    }
    const size_t end = c->at + (size_t)bytes;
    if (end > c->loaded) {
        const size_t ahead = c->most - c->loaded < LOADED_AT_ONCE ? c->most : c->loaded + LOADED_AT_ONCE, to = end > ahead ? end : ahead;
        if (!files_pread(c->source, c->loaded, c->bytes + c->loaded, to - c->loaded, c->error, c->error_size))
            return NULL;
        c->loaded = to;
    }
    const unsigned char *const start = c->bytes + c->at;
    c->at = end;
    return start;
}

static bool take_u32(cursor *c, uint32_t *value, const char *what)
{
    const unsigned char *const bytes = take(c, sizeof *value, what);
    if (bytes != NULL)
        memcpy(value, bytes, sizeof *value);
    return bytes != NULL;
}

static bool take_u64(cursor *c, uint64_t *value, const char *what)
{
    const unsigned char *const bytes = take(c, sizeof *value, what);
    if (bytes != NULL)
        memcpy(value, bytes, sizeof *value);
    return bytes != NULL;
}

/* A key or a name, which moves by a byte to the front, over its length, so that a zero byte can end it. */
static const char *take_name(cursor *c, const char *what)
{
    uint64_t length;
    if (!take_u64(c, &length, what))
        return NULL;
    if (length == 0 || length > GGUF_MAX_NAME) {
        fail(c, "%s: length %" PRIu64 ": must be from 1 to %d", what, length, GGUF_MAX_NAME);
        return NULL;
    }
    if (take(c, length, what) == NULL)
        return NULL;
    char *const name = (char *)c->bytes + c->at - length - 1;
    memmove(name, name + 1, (size_t)length);
    name[length] = '\0';
    if (strlen(name) != length) {
        fail(c, "%s: %.200s: must have no zero byte", what, name);
        return NULL;
    }
    return name;
}

size_t gguf_width(gguf_type type)
{
    return widths[type];
}

/* Moves on over a value and checks it. */
static bool take_value(cursor *c, gguf_type type, int depth, const char *key)
{
    if (type == GGUF_STRING) {
        uint64_t length;
        return take_u64(c, &length, key) && take(c, length, key) != NULL;
    }
    if (type != GGUF_ARRAY) {
        const unsigned char *const value = take(c, widths[type], key);
        return value != NULL && (type != GGUF_BOOL || *value <= 1 || fail(c, "%.200s: %d: must be 0 or 1", key, *value));
    }
    uint32_t inner;
    uint64_t count;
    if (!take_u32(c, &inner, key) || !take_u64(c, &count, key))
        return false;
    if (inner >= GGUF_TYPES)
        return fail(c, "%.200s: an array of type %" PRIu32 ": must be below %d", key, inner, GGUF_TYPES);
    if (inner == GGUF_ARRAY && depth == GGUF_MAX_DEPTH)
        return fail(c, "%.200s: more than %d arrays in arrays", key, GGUF_MAX_DEPTH);
    if (count > GGUF_MAX_ELEMENTS)
        return fail(c, "%.200s: %" PRIu64 " elements: must be at most %d", key, count, GGUF_MAX_ELEMENTS);
    if (widths[inner] != 0 && inner != GGUF_BOOL)
        return take(c, count * widths[inner], key) != NULL;
    for (uint64_t i = 0; i < count; ++i)
        if (!take_value(c, (gguf_type)inner, depth + 1, key))
            return false;
    return true;
}

static int by_key(const void *left, const void *right)
{
    return strcmp(((const gguf_entry *)left)->key, ((const gguf_entry *)right)->key);
}

/* The number of things of at least `least` bytes each that follow. */
static bool take_count(cursor *c, size_t *count, size_t least, const char *what)
{
    uint64_t number;
    if (!take_u64(c, &number, what))
        return false;
    if (number > GGUF_MAX_ENTRIES)
        return fail(c, "%s = %" PRIu64 ": must be at most %d", what, number, GGUF_MAX_ENTRIES);
    if (number > (c->source->bytes - c->at) / least)
        return fail(c, "%s = %" PRIu64 ": the file has only %zu more bytes", what, number, c->source->bytes - c->at);
    *count = (size_t)number;
    return true;
}

static bool take_entries(cursor *c, gguf *file)
{
    for (size_t i = 0; i < file->entry_count; ++i) {
        gguf_entry *const entry = &file->entries[i];
        uint32_t type;
        if ((entry->key = take_name(c, "a key of metadata")) == NULL || !take_u32(c, &type, entry->key))
            return false;
        if (type >= GGUF_TYPES)
            return fail(c, "%.200s: type %" PRIu32 ": must be below %d", entry->key, type, GGUF_TYPES);
        const size_t at = c->at;
        entry->type = (gguf_type)type;
        if (!take_value(c, entry->type, 1, entry->key))
            return false;
        entry->value = c->bytes + at;
    }
    qsort(file->entries, file->entry_count, sizeof *file->entries, by_key);
    for (size_t i = 1; i < file->entry_count; ++i)
        if (strcmp(file->entries[i - 1].key, file->entries[i].key) == 0)
            return fail(c, "%.200s: stands twice", file->entries[i].key);
    return true;
}

static const gguf_entry *find(const gguf *file, const char *key)
{
    const gguf_entry wanted = {.key = key};
    return file->entry_count == 0 ? NULL : bsearch(&wanted, file->entries, file->entry_count, sizeof *file->entries, by_key);
}

/* The whole number under a key, or `otherwise` where there is none; from `least` to `most`. */
static bool number_of(const cursor *c, const gguf *file, const char *key, uint64_t otherwise, uint64_t least, uint64_t most,
                      uint64_t *number)
{
    const gguf_entry *const entry = find(file, key);
    *number = otherwise;
    if (entry == NULL)
        return true;
    if (entry->type > GGUF_I32 && entry->type != GGUF_U64 && entry->type != GGUF_I64)
        return fail(c, "%s: must be one whole number", key);
    *number = 0;
    memcpy(number, entry->value, widths[entry->type]);
    const bool negative = entry->type % 2 != 0 && entry->value[widths[entry->type] - 1] > 127; /* signed types are odd */
    return (!negative && *number >= least && *number <= most) || fail(c, "%s: must be from %" PRIu64 " to %" PRIu64, key, least, most);
}

/* ---- tensors ---- */

static bool take_shape(cursor *c, safetensors_tensor *tensor)
{
    uint32_t rank;
    if (!take_u32(c, &rank, tensor->name))
        return false;
    if (rank > MAX_RANK)
        return fail(c, "tensor %.200s: %" PRIu32 " dimensions: must be at most %d", tensor->name, rank, MAX_RANK);
    tensor->rank = (int)rank;
    tensor->count = 1;
    for (int i = tensor->rank - 1; i >= 0; --i) {
        uint64_t size;
        if (!take_u64(c, &size, tensor->name))
            return false;
        if (size == 0 || size > INT64_MAX || __builtin_mul_overflow(tensor->count, size, &tensor->count))
            return fail(c, "tensor %.200s: dimension %" PRIu64 ": must be from 1 on, and the number of elements below 2^64", tensor->name,
                        size);
        tensor->shape[i] = (int64_t)size;
    }
    return true;
}

static bool fail_type(const cursor *c, const char *tensor, uint32_t number)
{
    char type[32];
    snprintf(type, sizeof type, "%" PRIu32, number);
    for (size_t i = 0; i < sizeof unread / sizeof *unread; ++i)
        if (unread[i].number == number)
            snprintf(type, sizeof type, "%s (%" PRIu32 ")", unread[i].name, number);
    return fail(c, "tensor %.200s: type %s: must be F32, F16, BF16, F64, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 or Q2_K to Q6_K", tensor, type);
}

/* Gives a tensor its dtype, its blocks and its number of bytes. */
static bool set_type(const cursor *c, safetensors_tensor *tensor, uint32_t number)
{
    size_t elements = 1, bytes = 0;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; ++i) {
        if (plain[i].number == number) {
            tensor->dtype = plain[i].dtype;
            tensor->dtype_name = plain[i].name;
            bytes = safetensors_width(tensor->dtype);
        }
    }
    if ((tensor->blocks = gguf_blocks_of(number)) != NULL) {
        tensor->dtype = DTYPE_F32;
        tensor->dtype_name = "F32";
        elements = tensor->blocks->elements;
        bytes = tensor->blocks->bytes;
    }
    if (bytes == 0)
        return fail_type(c, tensor->name, number);
    const size_t width = tensor->rank > 0 ? (size_t)tensor->shape[tensor->rank - 1] : 1;
    if (width % elements != 0)
        return fail(c, "tensor %.200s: rows of %zu: must be a multiple of %zu in %s", tensor->name, width, elements, tensor->blocks->name);
    return !__builtin_mul_overflow(tensor->count / elements, bytes, &tensor->bytes) ||
           fail(c, "tensor %.200s: the number of bytes overflows", tensor->name);
}

static bool take_tensors(cursor *c, gguf *file)
{
    uint64_t alignment;
    if (!number_of(c, file, "general.alignment", USUAL_ALIGNMENT, 1, 1 << 20, &alignment))
        return false;
    if (alignment % 8 != 0)
        return fail(c, "general.alignment = %" PRIu64 ": must be a multiple of 8", alignment);
    for (size_t i = 0; i < file->count; ++i) {
        safetensors_tensor *const tensor = &file->tensors[i];
        uint32_t type;
        uint64_t offset;
        if ((tensor->name = take_name(c, "the name of a tensor")) == NULL || !take_shape(c, tensor) || !take_u32(c, &type, tensor->name) ||
            !take_u64(c, &offset, tensor->name) || !set_type(c, tensor, type))
            return false;
        if (offset % alignment != 0)
            return fail(c, "tensor %.200s: offset %" PRIu64 ": must be a multiple of the alignment, %" PRIu64, tensor->name, offset,
                        alignment);
        tensor->at = (size_t)offset;
    }
    const size_t start = (c->at + (size_t)alignment - 1) / (size_t)alignment * (size_t)alignment;
    for (size_t i = 0; i < file->count; ++i) {
        safetensors_tensor *const tensor = &file->tensors[i];
        const size_t room = start > c->source->bytes ? 0 : c->source->bytes - start;
        if (tensor->at > room || tensor->bytes > room - tensor->at)
            return fail(c, "tensor %.200s: offset %zu, %zu bytes: the file has only %zu bytes of data", tensor->name, tensor->at,
                        tensor->bytes, room);
        tensor->at += start;
    }
    return true;
}

static int by_offset(const void *left, const void *right)
{
    const safetensors_tensor *a = left;
    const safetensors_tensor *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const safetensors_tensor *)left)->name, ((const safetensors_tensor *)right)->name);
}

/* Checks that no two tensors overlap or have one name; leaves them in the order of their names. */
static bool check_cover(const cursor *c, gguf *file)
{
    qsort(file->tensors, file->count, sizeof *file->tensors, by_offset);
    for (size_t i = 1; i < file->count; ++i)
        if (file->tensors[i].at < file->tensors[i - 1].at + file->tensors[i - 1].bytes)
            return fail(c, "tensor %.200s: overlaps tensor %.200s", file->tensors[i].name, file->tensors[i - 1].name);
    qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
    for (size_t i = 1; i < file->count; ++i)
        if (strcmp(file->tensors[i].name, file->tensors[i - 1].name) == 0)
            return fail(c, "tensor %.200s: stands twice", file->tensors[i].name);
    return true;
}

/* ---- the file ---- */

bool gguf_claims(const files_source *source)
{
    char start[4], ignored[1];
    return source->bytes >= sizeof start && files_pread(source, 0, start, sizeof start, ignored, sizeof ignored) &&
           memcmp(start, "GGUF", sizeof start) == 0;
}

static bool take_header(cursor *c, gguf *file)
{
    uint32_t version;
    if (take(c, 4, "magic") == NULL || !take_u32(c, &version, "version"))
        return false;
    if (version < FIRST_VERSION || version > LAST_VERSION)
        return fail(c, "version = %" PRIu32 ": must be %d or %d%s", version, FIRST_VERSION, LAST_VERSION,
                    version != 0 && version % 65536 == 0 ? "; this file is big-endian" : "");
    if (!take_count(c, &file->count, LEAST_TENSOR, "tensor_count") || !take_count(c, &file->entry_count, LEAST_ENTRY, "metadata_kv_count"))
        return false;
    file->entries = calloc(file->entry_count + 1, sizeof *file->entries);
    file->tensors = calloc(file->count + 1, sizeof *file->tensors);
    if (file->entries == NULL || file->tensors == NULL)
        return fail(c, "out of memory");
    uint64_t parts;
    if (!take_entries(c, file) || !number_of(c, file, "split.count", 1, 0, UINT16_MAX, &parts))
        return false;
    if (parts > 1) /* merging leaves 0 */
        return fail(c, "split.count = %" PRIu64 ": must be 0 or 1: merge the parts into one file first", parts);
    return take_tensors(c, file) && check_cover(c, file);
}

bool gguf_open(const files_source *source, gguf *file, char *error, size_t error_size)
{
    cursor c = {.source = source, .most = source->bytes, .error = error, .error_size = error_size};
    if (c.most > GGUF_MAX_HEADER)
        c.most = GGUF_MAX_HEADER;
    *file = (gguf){.header = malloc(c.most + 1)}; /* pages that nothing is read into cost nothing */
    c.bytes = file->header;
    return c.bytes == NULL ? fail(&c, "out of memory") : take_header(&c, file);
}

void gguf_close(gguf *file)
{
    free(file->tensors);
    free(file->entries);
    free(file->header);
}

/* ---- values ---- */

bool gguf_read(const files_source *source, const safetensors_tensor *tensor, size_t first, size_t count, float *out, char *error,
               size_t error_size)
{
    enum { AT_ONCE = 32 };
    const gguf_blocks *const blocks = tensor->blocks;
    unsigned char bytes[AT_ONCE * GGUF_LARGEST_BLOCK];
    float values[GGUF_MOST_ELEMENTS];
    const size_t end = first + count, last = count > 0 ? (end - 1) / blocks->elements + 1 : 0;
    size_t start = 0, loaded = 0; /* blocks in `bytes` */
    for (size_t block = first / blocks->elements; block < last; ++block) {
        if (block >= loaded) {
            start = block;
            loaded = last - block < AT_ONCE ? last : block + AT_ONCE;
            if (!files_pread(source, tensor->at + start * blocks->bytes, bytes, (loaded - start) * blocks->bytes, error, error_size))
                return false;
        }
        blocks->decode(bytes + (block - start) * blocks->bytes, values);
        const size_t here = block * blocks->elements, from = first > here ? first - here : 0;
        const size_t to = end - here < blocks->elements ? end - here : blocks->elements;
        memcpy(out, values + from, (to - from) * sizeof *out);
        out += to - from;
    }
    return true;
}

bool gguf_read_blocks(const files_source *source, const safetensors_tensor *tensor, size_t first, size_t count, unsigned char *out,
                      char *error, size_t error_size)
{
    const size_t bytes = tensor->blocks->bytes;
    return files_pread(source, tensor->at + first * bytes, out, count * bytes, error, error_size);
}
