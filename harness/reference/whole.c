/* The reference of what stands before and behind a transformer's blocks, in float64. */
#include "harness/reference/whole.h"

#include "gen/host/files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads rows of tables. */
typedef struct {
    double *row; /* room for one */
    char *error;
    size_t size;
} reader;

/* Adds `factor` times row number `row` of a table, rounded to the type, to x. */
static bool add_row(const reader *r, const reference_map *table, size_t row, double factor, reference_type type, double *x)
{
    if (!safetensors_read(table->file, table->weight, row * table->columns, table->columns, r->row, r->error, r->size))
        return false;
    reference_map_round(table, type, r->row);
    for (size_t i = 0; i < table->columns; ++i)
        x[i] += factor * r->row[i];
    return true;
}

static void add_sines(const reference_embedding *e, size_t position, double *x)
{
    const size_t half = e->width / 2;
    for (size_t i = 0; e->frequencies && i < half; ++i) {
        const double angle = (double)position / pow(e->max, (double)i / (double)e->frequencies);
        x[e->halves ? i : 2 * i] += sin(angle);
        x[e->halves ? half + i : 2 * i + 1] += cos(angle);
    }
}

/* x += position `t`. */
static bool add_position(const reader *r, const reference_embedding *e, size_t t, double *x)
{
    add_sines(e, t, x);
    return !e->positions.weight || add_row(r, &e->positions, e->first_position + t, 1.0, REFERENCE_F32, x);
}

/* words[count][width] += rows of words, unscaled, with the first token type; places[count][width] += positions. */
static bool read_parts(const reference_embedding *e, const int32_t *ids, size_t count, double *words, double *places, char *error,
                       size_t size)
{
    const size_t width = e->width;
    const reader r = {malloc((width + 1) * sizeof *r.row), error, size};
    bool ok = r.row || files_error(error, size, "not enough memory for %zu tokens", count);
    for (size_t t = 0; ok && t < count; ++t) {
        ok = add_row(&r, &e->words, (size_t)ids[t], 1.0, REFERENCE_F32, words + t * width);
        if (ok && e->token_types.weight)
            ok = add_row(&r, &e->token_types, 0, 1.0 / e->scale, REFERENCE_F32, words + t * width);
        ok = ok && add_position(&r, e, t, places + t * width);
    }
    free(r.row);
    return ok;
}

/* row[width] of a map's matrix, times the gains of the norm before it, less its mean where that takes one; returns the sum of what the norm
   adds, times the row. */
static double fold_norm(const reference_outer_norm *norm, double *row, size_t width)
{
    double mean = 0.0, added = 0.0;
    for (size_t i = 0; i < width; ++i) {
        added += norm->weights.offset ? row[i] * norm->weights.offset[i] : 0.0;
        row[i] *= norm->weights.gain[i];
        mean += row[i] / (double)width;
    }
    for (size_t i = 0; norm->mean && i < width; ++i)
        row[i] -= mean;
    return added;
}

/* What the first block's maps are given: words, places, and sums of both as tables of the type have them, which norms measure. */
typedef struct {
    const double *words, *places, *rows; /* [count][width] */
    size_t count, step;                  /* step: from token to token of what the maps make */
} first_inputs;

/* x[count], `step` apart, <- what one of the maps makes of words, rounded, and of places, behind the norm if there is one. */
static bool project(const reference_embedding *e, const first_inputs *in, const reference_map *map, const reference_outer_norm *norm,
                    double *x, char *error, size_t size)
{
    const size_t width = e->width, count = in->count, step = in->step;
    double *matrix = malloc((map->rows * width + map->rows + 1) * sizeof *matrix), *of_word = matrix ? matrix + map->rows * width : NULL;
    if (!matrix)
        return files_error(error, size, "not enough memory for %zu tokens", count);
    bool ok = reference_map_matrix(map, matrix, error, size);
    for (size_t r = 0; ok && r < map->rows; ++r) {
        double bias = 0.0;
        if (map->bias)
            ok = safetensors_read(map->bias_file, map->bias, reference_map_row(map, r), 1, &bias, error, size);
        if (norm)
            bias += fold_norm(norm, matrix + r * width, width);
        for (size_t t = 0; t < count; ++t)
            x[t * step + r] = bias;
    }
    for (size_t t = 0; ok && t < count; ++t) {
        double mean;
        const double factor = norm ? 1.0 / reference_norm_root(norm->mean, norm->eps, in->rows + t * width, width, &mean) : 1.0;
        for (size_t r = 0; r < map->rows; ++r) {
            of_word[r] = 0.0;
            for (size_t i = 0; i < width; ++i) {
                of_word[r] += matrix[r * width + i] * in->words[t * width + i];
                x[t * step + r] += factor * matrix[r * width + i] * in->places[t * width + i];
            }
        }
        reference_round_row(e->projected_type, of_word, map->rows);
        for (size_t r = 0; r < map->rows; ++r)
            x[t * step + r] += factor * e->scale * of_word[r];
    }
    free(matrix);
    return ok;
}

/* x[count][of all parts] <- what the first block's maps make of words and positions, and rows[count][width] behind that, normed in place,
   where they are wanted. */
static bool project_all(const reference_embedding *e, const int32_t *ids, size_t count, double *rows, double *x, char *error, size_t size)
{
    const reference_outer_norm *norm = e->norm.weights.gain ? &e->norm : e->first.weights.gain ? &e->first : NULL;
    const size_t width = e->width, parts = sizeof e->projected / sizeof *e->projected;
    size_t step = e->copied ? width : 0, at = 0;
    for (size_t n = 0; n < parts && e->projected[n].map.weight; ++n)
        step += e->projected[n].map.rows;
    double *words = calloc(2 * count * width + 1, sizeof *words), *places = words ? words + count * width : NULL;
    bool ok =
        words ? read_parts(e, ids, count, words, places, error, size) : files_error(error, size, "not enough memory for %zu tokens", count);
    const first_inputs in = {words, places, rows, count, step};
    for (size_t n = 0; ok && n < parts && e->projected[n].map.weight; ++n) {
        const reference_map *map = &e->projected[n].map;
        ok = project(e, &in, map, e->projected[n].normed ? norm : NULL, x + at, error, size);
        at += map->rows;
    }
    reference_normalise(&e->norm.weights, e->norm.mean, e->norm.eps, rows, width, count);
    for (size_t t = 0; ok && e->copied && t < count; ++t)
        memcpy(x + t * step + at, rows + t * width, width * sizeof *x);
    free(words);
    return ok;
}

bool reference_embed(const reference_embedding *e, const int32_t *ids, size_t count, double *x, char *error, size_t error_size)
{
    const size_t width = e->width;
    const reader r = {malloc(width * sizeof *r.row), error, error_size};
    double *rows = calloc(count * width + 1, sizeof *rows);
    bool ok = r.row && rows;
    if (!ok)
        files_error(error, error_size, "not enough memory for %zu tokens", count);
    for (size_t t = 0; ok && t < count; ++t) {
        double *row = rows + t * width;
        ok = add_row(&r, &e->words, (size_t)ids[t], e->scale, e->type, row);
        ok = ok && add_position(&r, e, t, row);
        if (ok && e->token_types.weight)
            ok = add_row(&r, &e->token_types, 0, 1.0, REFERENCE_F32, row);
    }
    if (ok && e->projected[0].map.weight) {
        ok = project_all(e, ids, count, rows, x, error, error_size);
    } else if (ok) {
        reference_normalise(&e->norm.weights, e->norm.mean, e->norm.eps, rows, width, count);
        if (e->map.weight)
            ok = reference_map_apply(&e->map, (reference_map_types){e->map_type, e->activations}, rows, x, count, error, error_size);
        else
            memcpy(x, rows, count * width * sizeof *x);
    }
    free(r.row);
    free(rows);
    return ok;
}

/* rows[count][width] -> one row in its place. */
static void pool(const reference_output *o, double *rows, size_t count)
{
    for (size_t i = 0; i < o->width; ++i) {
        double sum = 0.0;
        for (size_t t = 0; t < count; ++t)
            sum += rows[t * o->width + i];
        switch (o->pool) {
        case REFERENCE_POOL_MEAN: rows[i] = sum / (double)count; break;
        case REFERENCE_POOL_SQRT_N: rows[i] = sum / sqrt((double)count); break;
        case REFERENCE_POOL_LAST: rows[i] = rows[(count - 1) * o->width + i]; break;
        default: break;
        }
    }
}

/* *rows[count][*width] <- the map of it, a new array. */
static bool mapped(const reference_map *map, const reference_output *o, double **rows, size_t *width, size_t count, char *error,
                   size_t size)
{
    double *y = malloc((count * map->rows + 1) * sizeof *y);
    const bool ok = y ? reference_map_apply(map, (reference_map_types){o->type, o->activations}, *rows, y, count, error, size)
                      : files_error(error, size, "not enough memory for %zu tokens", count);
    free(*rows);
    *rows = y;
    *width = map->rows;
    return ok;
}

bool reference_finish(const reference_output *o, const double *x, size_t count, double *y, char *error, size_t error_size)
{
    size_t width = o->width;
    double *rows = malloc((count * width + 1) * sizeof *rows);
    if (!rows)
        return files_error(error, error_size, "not enough memory for %zu tokens", count);
    memcpy(rows, x, count * width * sizeof *rows);
    reference_normalise(&o->norm.weights, o->norm.mean, o->norm.eps, rows, width, count);
    if (o->pool != REFERENCE_POOL_NONE) {
        pool(o, rows, count);
        count = 1;
    }
    bool ok = true;
    if (o->dense.weight) {
        ok = mapped(&o->dense, o, &rows, &width, count, error, error_size);
        for (size_t i = 0; ok && i < count * width; ++i)
            rows[i] = o->activation(rows[i]);
        if (ok)
            reference_normalise(&o->dense_norm.weights, o->dense_norm.mean, o->dense_norm.eps, rows, width, count);
    }
    for (size_t t = 0; ok && o->unit && t < count; ++t) {
        double square = 0.0;
        for (size_t i = 0; i < width; ++i)
            square += rows[t * width + i] * rows[t * width + i];
        for (size_t i = 0; square > 0.0 && i < width; ++i)
            rows[t * width + i] /= sqrt(square);
    }
    if (ok && o->head.weight) {
        ok = mapped(&o->head, o, &rows, &width, count, error, error_size);
        for (size_t i = 0; ok && o->soft_cap > 0.0 && i < count * width; ++i)
            rows[i] = o->soft_cap * tanh(rows[i] / o->soft_cap);
    }
    if (ok)
        memcpy(y, rows, count * width * sizeof *y);
    free(rows);
    return ok;
}
