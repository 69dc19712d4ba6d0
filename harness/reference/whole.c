/* The reference of what stands before and behind a transformer's blocks, in float64. */
#include "harness/reference/whole.h"

#include "gen/host/files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Adds `factor` times row number `row` of a table, rounded to the type, to x. */
static bool add_row(const reference_map *table, size_t row, double factor, reference_type type, double *own, double *x, char *error,
                    size_t size)
{
    if (!safetensors_read(table->file, table->weight, row * table->columns, table->columns, own, error, size))
        return false;
    reference_round_row(type, own, table->columns);
    for (size_t i = 0; i < table->columns; ++i)
        x[i] += factor * own[i];
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

bool reference_embed(const reference_embedding *e, const int32_t *ids, size_t count, double *x, char *error, size_t error_size)
{
    const size_t width = e->width;
    double *own = malloc(width * sizeof *own), *rows = calloc(count * width + 1, sizeof *rows);
    bool ok = own && rows;
    if (!ok)
        files_error(error, error_size, "not enough memory for %zu tokens", count);
    for (size_t t = 0; ok && t < count; ++t) {
        double *row = rows + t * width;
        ok = add_row(&e->words, (size_t)ids[t], e->scale, e->type, own, row, error, error_size);
        if (ok && e->positions.weight)
            ok = add_row(&e->positions, e->first_position + t, 1.0, REFERENCE_F32, own, row, error, error_size);
        if (ok && e->token_types.weight)
            ok = add_row(&e->token_types, 0, 1.0, REFERENCE_F32, own, row, error, error_size);
        add_sines(e, t, row);
    }
    if (ok) {
        reference_normalise(&e->norm.weights, e->norm.mean, e->norm.eps, rows, width, count);
        if (e->map.weight)
            ok = reference_map_apply(&e->map, e->map_type, e->activations, rows, x, count, error, error_size);
        else
            memcpy(x, rows, count * width * sizeof *x);
    }
    free(own);
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
    const bool ok = y ? reference_map_apply(map, o->type, o->activations, *rows, y, count, error, size)
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
