/* Writes a checkpoint again with its matrices and tables in integers of 8 bits, tables perhaps of 4. */
#include "gen/weights/round_checkpoint.h"

#include "gen/host/files.h"
#include "gen/weights/quantise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values that are rounded at a time, about: whole rows. */
enum { CHUNK_VALUES = 1 << 16 };

static bool is_rounded(const safetensors_tensor *tensor)
{
    return tensor->rank >= 2 && tensor->count > 0;
}

/* Whether it is a LookupFFN's tables, in rows of whole bytes of half bytes. */
static bool are_tables(const safetensors_tensor *tensor)
{
    static const char ending[] = "tables";
    const size_t length = strlen(tensor->name), own = sizeof ending - 1;
    return tensor->rank == 3 && tensor->count > 0 && tensor->shape[2] % 2 == 0 && length >= own &&
           strcmp(tensor->name + length - own, ending) == 0 && (length == own || tensor->name[length - own - 1] == '.');
}

static size_t width_of(const safetensors_tensor *tensor)
{
    return is_rounded(tensor) ? (size_t)tensor->shape[tensor->rank - 1] : tensor->count;
}

static size_t rows_of(const safetensors_tensor *tensor)
{
    return is_rounded(tensor) ? tensor->count / width_of(tensor) : 1;
}

/* The file that is written, and memory for a tensor. */
typedef struct {
    safetensors_writer *writer;
    bool halves;   /* tables are in half bytes */
    double *work;  /* [width or CHUNK_VALUES + width] */
    float *bytes;  /* as many, in the wider type */
    float *scales; /* of all rows of a tensor */
    quantise_tally tally;
} copying;

/* Appends the tensor in integers and the scales of its rows, or in F32. */
static bool append(copying *c, const safetensors *file, const safetensors_tensor *tensor, char *error, size_t error_size)
{
    const bool rounded = is_rounded(tensor);
    const quantise_type type = c->halves && are_tables(tensor) ? QUANTISE_I4 : rounded ? QUANTISE_I8 : QUANTISE_F32;
    const size_t rows = rows_of(tensor), width = width_of(tensor), most = 1 + CHUNK_VALUES / (width + 1);
    for (size_t row = 0; row < rows; row += most) {
        const size_t count = (rows - row < most ? rows - row : most) * width;
        quantise_tally ignored = {0};
        if (!safetensors_read(file, tensor, row * width, count, c->work, error, error_size))
            return false;
        if (!quantise_round(type, c->work, rounded ? count / width : 1, rounded ? width : count, c->scales + row,
                            rounded ? &c->tally : &ignored))
            return files_error(error, error_size, "%s: tensor %s: a value is too large", safetensors_path(file), tensor->name);
        for (size_t i = 0; i < count; ++i)
            quantise_store(type, c->work[i], c->bytes, i);
        if (!safetensors_append(c->writer, c->bytes, quantise_size(type, count), error, error_size))
            return false;
    }
    return !rounded || safetensors_append(c->writer, c->scales, rows * sizeof *c->scales, error, error_size);
}

/* What the writer has to know of the tensors of all files, with their scales; *count of them, from malloc, whose names are list's. */
typedef struct {
    safetensors_description *list;
    char **names; /* of scales, NULL for others */
    size_t count;
} descriptions;

static void free_descriptions(descriptions *d)
{
    for (size_t i = 0; d->names != NULL && i < d->count; ++i)
        free(d->names[i]);
    free(d->names);
    free(d->list);
}

static bool describe(descriptions *d, const safetensors_tensor *tensor, bool halves)
{
    safetensors_description *const own = &d->list[d->count++];
    *own = (safetensors_description){.name = tensor->name, .rank = tensor->rank, .dtype = is_rounded(tensor) ? DTYPE_I8 : DTYPE_F32};
    if (halves && are_tables(tensor))
        own->dtype = DTYPE_I4;
    memcpy(own->shape, tensor->shape, sizeof own->shape);
    if (!is_rounded(tensor))
        return true;
    const char *const ending = own->dtype == DTYPE_I4 ? SAFETENSORS_HALF_SCALE : SAFETENSORS_SCALE;
    const size_t length = strlen(tensor->name) + strlen(ending) + 1;
    char *const name = malloc(length);
    if (name == NULL)
        return false;
    snprintf(name, length, "%s%s", tensor->name, ending);
    d->names[d->count] = name;
    d->list[d->count] = *own;
    d->list[d->count].name = name;
    d->list[d->count].rank = tensor->rank - 1;
    d->list[d->count++].dtype = DTYPE_F32;
    return true;
}

bool rounded_write(const shards *checkpoint, const char *path, bool halves, double *error_share, char *error, size_t error_size)
{
    size_t tensors = 0, widest = 0, most_rows = 1, tables = 0;
    for (size_t i = 0; i < shards_count(checkpoint); ++i) {
        const safetensors *const file = shards_at(checkpoint, i);
        tensors += safetensors_count(file);
        for (size_t k = 0; k < safetensors_count(file); ++k) {
            const safetensors_tensor *const tensor = safetensors_at(file, k);
            tables += are_tables(tensor) ? 1 : 0;
            widest = width_of(tensor) > widest ? width_of(tensor) : widest;
            most_rows = rows_of(tensor) > most_rows ? rows_of(tensor) : most_rows;
        }
    }
    if (halves && tables == 0)
        return files_error(error, error_size, "%s: has no tables of a LookupFFN with rows of an even width, which alone can be in i4",
                           shards_path(checkpoint));
    descriptions d = {calloc(2 * tensors + 1, sizeof *d.list), calloc(2 * tensors + 1, sizeof *d.names), 0};
    copying c = {.halves = halves, .scales = malloc(most_rows * sizeof *c.scales)};
    c.work = malloc((CHUNK_VALUES + 2 * widest) * sizeof *c.work);
    c.bytes = malloc((CHUNK_VALUES + 2 * widest) * sizeof *c.bytes);
    bool good = d.list != NULL && d.names != NULL && c.work != NULL && c.bytes != NULL && c.scales != NULL;
    for (size_t i = 0; good && i < shards_count(checkpoint); ++i)
        for (size_t k = 0; good && k < safetensors_count(shards_at(checkpoint, i)); ++k)
            good = describe(&d, safetensors_at(shards_at(checkpoint, i), k), halves);
    if (!good)
        files_error(error, error_size, "%s: not enough memory", path);
    c.writer = good ? safetensors_create(path, d.list, d.count, error, error_size) : NULL;
    good = c.writer != NULL;
    for (size_t i = 0; good && i < shards_count(checkpoint); ++i) {
        const safetensors *const file = shards_at(checkpoint, i);
        for (size_t k = 0; good && k < safetensors_count(file); ++k)
            good = append(&c, file, safetensors_at(file, k), error, error_size);
    }
    if (good) {
        good = safetensors_finish(c.writer, error, error_size);
    } else {
        safetensors_abandon(c.writer);
    }
    if (error_share != NULL)
        *error_share = c.tally.power > 0.0 ? sqrt(c.tally.error / c.tally.power) : 0.0;
    free(c.scales);
    free(c.bytes);
    free(c.work);
    free_descriptions(&d);
    return good;
}
