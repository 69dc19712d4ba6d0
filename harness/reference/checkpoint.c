/* The reference's weights out of a checkpoint. */
#include "harness/reference/checkpoint.h"

#include "gen/host/files.h"
#include "gen/weights/safetensors.h"

#include <stdlib.h>

struct checkpoint {
    const char *prefix; /* of the call that opens it */
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

/* The whole tensor as float64, or NULL with one line. */
static double *load(const checkpoint *file, const char *name, int rank, const int64_t *shape, char *error, size_t error_size)
{
    const safetensors_tensor *tensor = safetensors_expect(file->file, file->prefix, name, shape, rank, error, error_size);
    return tensor ? safetensors_load(file->file, tensor, error, error_size) : NULL;
}

/* The reference's own, which shares nothing with folding. */
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
    file->tables =
        safetensors_expect(file->file, file->prefix, "tables", (int64_t[]){h, (int64_t)1 << model->tau, d_out}, 3, error, error_size);
    if (!file->tables)
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
        files_error(error, error_size, "%s: not enough memory", path);
        return NULL;
    }
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
