/* Packs the projection and the tables of integer kernels. */
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/weights/integer.h"
#include "gen/weights/packing.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

static const char where[] = "weights: ";

/* The same whole, in memory that Lua frees. */
static double *folded(packing *p, int job, const char *name)
{
    size_t count;
    if (!packing_folded(p, job, name, 1, 0, &count))
        return NULL;
    double *copy = lua_newuserdatauv(p->L, (count + 1) * sizeof *copy, 0);
    memcpy(copy, p->data, count * sizeof *copy);
    return copy;
}

/* The place in the blob of the section in the field `name` of `at`; NULL without one. */
static void *packed_at(packing *p, int job, const char *name)
{
    lua_State *L = p->L;
    lua_getfield(L, job, "at");
    const bool there = lua_getfield(L, -1, name) != LUA_TNIL;
    const size_t at = (size_t)lua_tointeger(L, -1);
    lua_pop(L, 2);
    luaL_argcheck(L, at < p->blob_bytes, 1, name);
    return there ? p->blob + at : NULL;
}

/* The list in the field `steps`, in memory that Lua frees. */
static const integer_step *read_steps(lua_State *L, int job, size_t *count)
{
    lua_getfield(L, job, "steps");
    const int list = lua_gettop(L);
    *count = lua_rawlen(L, list);
    integer_step *steps = lua_newuserdatauv(L, (*count + 1) * sizeof *steps, 0);
    for (size_t n = 0; n < *count; ++n) {
        lua_rawgeti(L, list, (lua_Integer)n + 1);
        const int step = lua_gettop(L);
        lua_getfield(L, step, "first");
        lua_getfield(L, step, "last");
        lua_getfield(L, step, "products");
        const size_t products = lua_rawlen(L, step + 3);
        integer_product *product = lua_newuserdatauv(L, (products + 1) * sizeof *product, 0);
        steps[n] = (integer_step){.products = product,
                                  .product_count = products,
                                  .blocks = field_size(L, step, where, "blocks"),
                                  .width = field_size(L, step, where, "width"),
                                  .rows = field_size(L, step, where, "rows"),
                                  .first = lua_toboolean(L, step + 1),
                                  .last = lua_toboolean(L, step + 2),
                                  .z_at = field_size(L, step, where, "z_at"),
                                  .shift_at = field_size(L, step, where, "shift_at")};
        for (size_t k = 0; k < products; ++k) {
            lua_rawgeti(L, step + 3, (lua_Integer)k + 1);
            const int row = lua_gettop(L);
            product[k] = (integer_product){.count = field_size(L, row, where, "count"),
                                           .rows = field_size(L, row, where, "rows"),
                                           .outputs = field_size(L, row, where, "outputs"),
                                           .folds = field_size(L, row, where, "folds"),
                                           .x_at = field_size(L, row, where, "x_at"),
                                           .x_stride = field_size(L, row, where, "x_stride"),
                                           .fold_gap = field_size(L, row, where, "fold_gap"),
                                           .target_at = field_size(L, row, where, "target_at"),
                                           .weight_at = field_size(L, row, where, "weight_at"),
                                           .multiplier_at = field_size(L, row, where, "multiplier_at"),
                                           .from = field_size(L, row, where, "from"),
                                           .block = field_size(L, row, where, "block"),
                                           .fold = field_size(L, row, where, "fold"),
                                           .row = field_size(L, row, where, "row"),
                                           .output = field_size(L, row, where, "output")};
            lua_settop(L, row - 1);
        }
        lua_rawseti(L, list, -(lua_Integer)n - 1); /* kept as long as the list is */
        lua_settop(L, list + 1);
    }
    return steps;
}

/* `error` with the file's name before it. */
static bool integer_error(packing *p, const char *error)
{
    return files_error(p->error, sizeof p->error, "%s: %s", p->path, error);
}

/* The tables of integer kernels: units first, then one table after the other. bounds [h tau]: of |z|. */
static bool pack_integer_tables(packing *p, int job, int errors, const double *bounds)
{
    lua_State *L = p->L;
    const size_t h = field_size(L, job, where, "h"), tau = field_size(L, job, where, "tau"), rows = (size_t)1 << tau;
    double *largest = lua_newuserdatauv(L, h * sizeof *largest, 0), *units = lua_newuserdatauv(L, h * rows * sizeof *units, 0);
    char error[256];
    size_t count;
    lua_getfield(L, job, "along");
    integer_tables tables = {.d_out = field_size(L, job, where, "d_out"),
                             .h = h,
                             .rows = rows,
                             .pitch = field_size(L, job, where, "pitch"),
                             .along = lua_toboolean(L, -1),
                             .shares = field_number(L, job, where, "shares"),
                             .sum_shift = (int)field_size(L, job, where, "sum_shift"),
                             .magnitude_fraction = (int)field_size(L, job, where, "magnitude_fraction"),
                             .fraction = (int)field_size(L, job, where, "fraction"),
                             .largest = largest,
                             .units = units,
                             .bias = folded(p, job, "output_bias"),
                             .packed_bias = packed_at(p, job, "bias")};
    uint8_t *shifts = packed_at(p, job, "shifts");
    tables.score_shift = &shifts[2];
    tables.y_shift = &shifts[3];
    luaL_argcheck(L, quantise_type_named(field_text(L, job, where, "table_type", NULL), &tables.type), 1, "table_type");
    if (!tables.bias)
        return false;
    for (size_t k = 0; k < h; ++k) {
        largest[k] = 0.0;
        for (size_t j = 0; j < tau; ++j)
            largest[k] += fmin(bounds[k * tau + j], ldexp(65536.0, -tables.magnitude_fraction));
        if (!packing_folded(p, job, "tables", h, k, &count))
            return false;
        for (size_t i = 0; i < rows; ++i)
            units[k * rows + i] = quantise_unit(tables.type, p->data + i * tables.d_out, tables.d_out);
    }
    if (!integer_plan_tables(&tables, error, sizeof error))
        return integer_error(p, error);
    uint8_t *packed = packed_at(p, job, "tables");
    uint16_t *scales = packed_at(p, job, "table_scales");
    for (size_t k = 0; k < h; ++k) {
        if (!packing_folded(p, job, "tables", h, k, &count))
            return false;
        for (size_t i = 0; i < rows; ++i)
            integer_pack_row(&tables, p->data + i * tables.d_out, units[k * rows + i],
                             packed + (k * rows + i) * quantise_size(tables.type, tables.pitch), &scales[k * rows + i]);
    }
    packing_note_error(p, errors, "tables", &tables.tally);
    return true;
}

bool packing_integer(packing *p, int job, int errors)
{
    lua_State *L = p->L;
    const size_t d = field_size(L, job, where, "d"), bits = field_size(L, job, where, "bits");
    char error[256];
    luaL_checkstack(L, 64, "weights");
    double *residual = NULL, *bounds = lua_newuserdatauv(L, bits * sizeof *bounds, 0);
    const double share = field_number(L, job, where, "residual_share");
    if (lua_getfield(L, job, "residual") == LUA_TTABLE) {
        residual = folded(p, job, "residual");
        if (!residual)
            return false;
    } else if (share > 0.0) {
        residual = lua_newuserdatauv(L, d * sizeof *residual, 0);
        for (size_t i = 0; i < d; ++i)
            residual[i] = share;
    }
    uint8_t *shifts = packed_at(p, job, "shifts");
    integer_projection projection = {.d = d,
                                     .bits = bits,
                                     .padded = field_size(L, job, where, "padded"),
                                     .max_weight = (int)field_size(L, job, where, "max_weight"),
                                     .element = field_size(L, job, where, "max_weight") > 127 ? 2 : 1,
                                     .unit = field_number(L, job, where, "unit"),
                                     .length = field_number(L, job, where, "length"),
                                     .magnitude_unit = ldexp(1.0, -(int)field_size(L, job, where, "magnitude_fraction")),
                                     .weights = folded(p, job, "projection"),
                                     .residual = residual,
                                     .packed = packed_at(p, job, "projection"),
                                     .multipliers = packed_at(p, job, "multipliers"),
                                     .packed_residual = packed_at(p, job, "residual"),
                                     .packed_bias = packed_at(p, job, "projection_bias"),
                                     .shifts = shifts,
                                     .z_shift = &shifts[0],
                                     .residual_shift = &shifts[1],
                                     .largest = bounds};
    projection.steps = read_steps(L, job, &projection.step_count);
    projection.bias = projection.weights ? folded(p, job, "bias") : NULL;
    if (!projection.bias)
        return false;
    if (!integer_pack_projection(&projection, error, sizeof error))
        return integer_error(p, error);
    packing_note_error(p, errors, "projection", &projection.tally);
    return pack_integer_tables(p, job, errors, bounds);
}
