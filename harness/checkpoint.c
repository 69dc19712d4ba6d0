/* The reference's weights out of a checkpoint. */
#include "checkpoint.h"

#include "gen/weights/file.h"
#include "gen/weights/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint {
    const char *path, *prefix; /* of the call that opens it */
    const reference_model *model;
    safetensors *file;
    const safetensors_tensor *tables;
    double *projection, *bias, *output_bias, *norm_weight, *norm_bias;
    reference_weights weights;
};

/* One row of the tables; a value that is not finite makes it fail. */
static bool read_row(void *source, size_t table, size_t code, double *row)
{
    const checkpoint *file = source;
    char ignored[256];
    const size_t index = (table << file->model->tau) + code;
    return safetensors_read(file->file, file->tables, index * file->model->d_out, file->model->d_out, row, ignored, sizeof ignored);
}

/* "[2][4][8]" */
static void shape_text(char *text, size_t size, const int64_t *shape, int rank)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && used < size; ++i)
        used += (size_t)snprintf(text + used, size - used, "[%lld]", (long long)shape[i]);
}

/* The tensor of that name and shape, or NULL with one line. */
static const safetensors_tensor *find(const checkpoint *file, const char *name, int rank, const int64_t *shape, char *error,
                                      size_t error_size)
{
    char full[512], found[256], wanted[256];
    const int length = snprintf(full, sizeof full, "%s%s", file->prefix, name);
    const safetensors_tensor *tensor = length >= 0 && (size_t)length < sizeof full ? safetensors_find(file->file, full) : NULL;
    if (!tensor) {
        const char *near = safetensors_nearest(file->file, full);
        file_error(error, error_size, "%s: %s: no such tensor%s%s%s", file->path, full, near ? "; did you mean " : "", near ? near : "",
                   near ? "?" : "");
        return NULL;
    }
    if (tensor->rank != rank || memcmp(tensor->shape, shape, (size_t)rank * sizeof *shape) != 0) {
        shape_text(found, sizeof found, tensor->shape, tensor->rank);
        shape_text(wanted, sizeof wanted, shape, rank);
        file_error(error, error_size, "%s: %s: shape %s: must be %s", file->path, full, found, wanted);
        return NULL;
    }
    return tensor;
}

/* The whole tensor as float64, or NULL with one line. */
static double *load(const checkpoint *file, const char *name, int rank, const int64_t *shape, char *error, size_t error_size)
{
    const safetensors_tensor *tensor = find(file, name, rank, shape, error, error_size);
    if (!tensor)
        return NULL;
    double *values = malloc(tensor->count * sizeof *values);
    if (!values)
        file_error(error, error_size, "%s: %s: not enough memory", file->path, name);
    else if (!safetensors_read(file->file, tensor, 0, tensor->count, values, error, error_size)) {
        free(values);
        values = NULL;
    }
    return values;
}

static void transpose_blocks(double *blocks, size_t count, size_t block)
{
    for (const double *end = blocks + count; blocks < end; blocks += block * block) {
        for (size_t o = 0; o < block; ++o) {
            for (size_t i = 0; i < o; ++i) {
                const double value = blocks[o * block + i];
                blocks[o * block + i] = blocks[i * block + o];
                blocks[i * block + o] = value;
            }
        }
    }
}

static bool load_all(checkpoint *file, bool blocks_in_out, char *error, size_t error_size)
{
    const reference_model *model = file->model;
    const int64_t d = (int64_t)model->d, d_out = (int64_t)model->d_out, h = (int64_t)model->h, bits = (int64_t)(model->h * model->tau);
    const int64_t b = (int64_t)model->block, padded = (int64_t)reference_padded(model), repeats = (int64_t)reference_repeats(model);

    if (model->projection == REFERENCE_DENSE) {
        file->projection = load(file, "hash.projection.weight", 2, (int64_t[]){bits, d}, error, error_size);
    } else {
        file->projection = load(file, "hash.projection.weight", 5, (int64_t[]){repeats, 4, padded / b, b, b}, error, error_size);
        if (file->projection && blocks_in_out)
            transpose_blocks(file->projection, reference_projection_count(model), model->block);
    }
    if (!file->projection)
        return false;
    if (!(file->bias = load(file, "hash.projection.bias", 1, &bits, error, error_size)))
        return false;
    if (!(file->tables = find(file, "tables", 3, (int64_t[]){h, (int64_t)1 << model->tau, d_out}, error, error_size)))
        return false;
    if (!(file->output_bias = load(file, "bias", 1, &d_out, error, error_size)))
        return false;
    if (!model->norm)
        return true;
    return (file->norm_weight = load(file, "LayerNorm.weight", 1, &d, error, error_size)) &&
           (file->norm_bias = load(file, "LayerNorm.bias", 1, &d, error, error_size));
}

checkpoint *checkpoint_open(const reference_model *model, const char *path, const char *prefix, bool blocks_in_out, char *error,
                            size_t error_size)
{
    checkpoint *file = calloc(1, sizeof *file);
    if (!file) {
        file_error(error, error_size, "%s: not enough memory", path);
        return NULL;
    }
    file->path = path;
    file->prefix = prefix;
    file->model = model;
    file->file = safetensors_open(path, error, error_size);
    if (!file->file || !load_all(file, blocks_in_out, error, error_size)) {
        checkpoint_close(file);
        return NULL;
    }
    file->weights = (reference_weights){
        .projection = file->projection,
        .bias = file->bias,
        .output_bias = file->output_bias,
        .norm_weight = file->norm_weight,
        .norm_bias = file->norm_bias,
        .row = read_row,
        .row_source = file,
    };
    return file;
}

void checkpoint_close(checkpoint *file)
{
    if (!file)
        return;
    safetensors_close(file->file);
    free(file->projection);
    free(file->bias);
    free(file->output_bias);
    free(file->norm_weight);
    free(file->norm_bias);
    free(file);
}

const reference_weights *checkpoint_weights(const checkpoint *file)
{
    return &file->weights;
}
