/* The reference's tables rounded to the type of a blob's elements. */
#include "harness/reference/tables.h"

#include "harness/reference/error_bounds.h"

#include <math.h>
#include <stdlib.h>

/* Floats are rounded behind the model's factor, which the reference multiplies by; with scales it is theirs. */
static bool rounded_row(void *source, size_t table, size_t code, double *row)
{
    const reference_tables *tables = source;
    const size_t count = tables->model->d_out;
    const double factor = reference_type_is_scaled(tables->type) ? 1.0 : tables->model->scale;
    if (!tables->exact->row(tables->exact->row_source, table, code, row))
        return false;
    for (size_t o = 0; o < count; ++o)
        row[o] *= factor;
    reference_round_row(tables->type, row, count);
    for (size_t o = 0; o < count; ++o)
        row[o] /= factor;
    return true;
}

static double row_scale(void *source, size_t table, size_t code)
{
    const reference_tables *tables = source;
    double *row = malloc(tables->model->d_out * sizeof *row);
    const bool good = row && tables->exact->row(tables->exact->row_source, table, code, row);
    const double scale = good ? reference_scale(tables->type, row, tables->model->d_out) : NAN;
    free(row);
    return scale * tables->model->scale;
}

reference_weights reference_tables_rounded(reference_tables *tables)
{
    reference_weights weights = *tables->exact;
    if (reference_type_is_exact(tables->type))
        return weights;
    weights.row = rounded_row;
    weights.row_source = tables;
    weights.row_scale = reference_type_is_scaled(tables->type) ? row_scale : NULL;
    if (reference_type_rounds_scores(tables->type))
        weights.score_levels = tables->byte_scores ? ERROR_BOUNDS_BYTE_SCORE_LEVELS : ERROR_BOUNDS_SCORE_LEVELS;
    return weights;
}
