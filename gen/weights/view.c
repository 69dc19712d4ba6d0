/* A matrix [rows][columns] that lies in a tensor. */
#include "gen/weights/view.h"

#include "gen/host/fields.h"

#include <lauxlib.h>

enum { STRIP = 512 }; /* values of a transposed view that are read at a time */

bool view_at(lua_State *L, int table, const char *name, view_source in, view *v, char *error, size_t error_size)
{
    int64_t shape[SAFETENSORS_MAX_RANK];
    const int rank = field_dimensions(L, table, "shape", shape, SAFETENSORS_MAX_RANK);
    v->rows = (size_t)field_integer(L, table, "view.", "rows", 1, 0);
    v->columns = (size_t)field_integer(L, table, "view.", "columns", 1, 1);
    v->group = (size_t)field_integer(L, table, "view.", "group", 1, (lua_Integer)v->rows);
    v->stride = field_size(L, table, "view.", "stride");
    v->offset = field_size(L, table, "view.", "offset");
    v->raised = (double)field_size(L, table, "view.", "raised");
    v->transposed = field_flag(L, table, "transposed");
    const shards_wanted wanted = {in.prefix, field_text(L, table, "view.", name, NULL), shape, rank};
    v->tensor = shards_expect(in.checkpoint, wanted, &v->file, error, error_size);
    luaL_argcheck(L, !v->tensor || v->tensor->count == 0 || (view_row(v, v->rows - 1) + 1) * v->columns <= v->tensor->count, 1, "view");
    return v->tensor != NULL;
}

size_t view_row(const view *v, size_t row)
{
    return row / v->group * v->stride + v->offset + row % v->group;
}

/* The same of a transposed view, for rows that lie side by side in the tensor, `at` the first of them: a strip of every of its rows. */
static bool read_strips(const view *v, size_t at, size_t count, double *out, char *error, size_t error_size)
{
    const size_t width = v->tensor->count / v->columns;
    double strip[STRIP];
    for (size_t row = 0; row < count; row += STRIP) {
        const size_t length = count - row < STRIP ? count - row : STRIP;
        for (size_t column = 0; column < v->columns; ++column) {
            if (!safetensors_read(v->file, v->tensor, column * width + at + row, length, strip, error, error_size))
                return false;
            for (size_t i = 0; i < length; ++i)
                out[(row + i) * v->columns + column] = strip[i];
        }
    }
    return true;
}

bool view_read(const view *v, size_t first, size_t count, double *out, char *error, size_t error_size)
{
    for (size_t row = first; row < first + count;) {
        const size_t inside = row % v->group, left = v->group - inside, wanted = first + count - row, run = left < wanted ? left : wanted;
        const size_t at = view_row(v, row);
        double *to = out + (row - first) * v->columns;
        if (v->transposed ? !read_strips(v, at, run, to, error, error_size)
                          : !safetensors_read(v->file, v->tensor, at * v->columns, run * v->columns, to, error, error_size))
            return false;
        row += run;
    }
    return true;
}
