/* The reference's tables rounded to the type of a blob's elements. */
#include "harness/reference/tables.h"

#include "harness/reference/error_bounds.h"

#include <math.h>
#include <stdlib.h>

static bool read_scaled(const reference_tables *tables, size_t table, size_t code, double *row)
{
    if (!tables->exact->row(tables->exact->row_source, table, code, row))
        return false;
    for (size_t o = 0; o < tables->model->d_out; ++o)
        row[o] *= tables->model->scale;
    return true;
}

static bool rounded_row(void *source, size_t table, size_t code, double *row)
{
    const reference_tables *tables = source;
    const size_t count = tables->model->d_out;
    if (!read_scaled(tables, table, code, row))
        return false;
    reference_round_row(tables->type, row, count);
    for (size_t o = 0; o < count; ++o)
        row[o] /= tables->model->scale; /* the reference multiplies by it */
    return true;
}

static double row_scale(void *source, size_t table, size_t code)
{
    const reference_tables *tables = source;
    double *row = malloc(tables->model->d_out * sizeof *row);
    const double scale = row && read_scaled(tables, table, code, row) ? reference_scale(tables->type, row, tables->model->d_out) : NAN;
    free(row);
    return scale;
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
