/* Packs projections once more, calibrated for what they read. */
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/weights/calibrate.h"
#include "gen/weights/npy.h"
#include "gen/weights/packing.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>

static const char where[] = "weights: ";

/* x[rows][d] <- each row without its mean, its variance 1: LayerNorm without gain and offset. */
static void normalise(float *x, size_t rows, size_t d, double eps)
{
    for (size_t row = 0; row < rows; ++row, x += d) {
        double mean = 0.0, variance = 0.0;
        for (size_t i = 0; i < d; ++i)
            mean += (double)x[i] / (double)d;
        for (size_t i = 0; i < d; ++i)
            variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)d;
        for (size_t i = 0; i < d; ++i)
            x[i] = (float)(((double)x[i] - mean) / sqrt(variance + eps));
    }
}

/* The rows that the table at `job` names, d columns, as its projection sees them; NULL with a message. */
static float *read_calibration_rows(packing *p, int job, size_t d, size_t *rows)
{
    const char *const path = field_text(p->L, job, where, "x", NULL);
    float *const x = npy_read_tokens(path, d, rows, p->error, sizeof p->error);
    bool good = x != NULL;
    if (good && *rows < CALIBRATE_LEAST_ROWS)
        good = files_error(p->error, sizeof p->error, "%s: %zu rows: calibration takes at least %d", path, *rows, CALIBRATE_LEAST_ROWS);
    for (size_t i = 0; good && i < *rows * d; ++i)
        if (!isfinite(x[i]))
            good = files_error(p->error, sizeof p->error, "%s: row %zu: has a value that is no number", path, i / d + 1);
    if (!good) {
        free(x);
        return NULL;
    }
    const double eps = field_number(p->L, job, where, "norm_eps");
    if (eps > 0.0)
        normalise(x, *rows, d, eps);
    return x;
}

bool packing_calibrated(packing *p, int job, int errors, int list)
{
    lua_State *L = p->L;
    calibration c = {.shape = {field_size(L, job, where, "d"), field_size(L, job, where, "bits"), field_size(L, job, where, "block"),
                               field_size(L, job, where, "padded"), field_size(L, job, where, "repeats"), 1.0},
                     .tau = field_size(L, job, where, "tau")};
    size_t count;
    double *const residual = lua_newuserdatauv(L, c.shape.d * sizeof *residual, 0);
    const float *const gains =
        field_size(L, job, where, "residual_at") ? (const void *)(p->blob + field_size(L, job, where, "residual_at")) : NULL;
    for (size_t i = 0; i < c.shape.d; ++i)
        residual[i] = gains != NULL ? (double)gains[i] : field_number(L, job, where, "residual");
    float *const x = read_calibration_rows(p, job, c.shape.d, &c.rows);
    if (x == NULL || !packing_folded(p, job, "projection", 1, 0, &count)) {
        free(x);
        return false;
    }
    lua_getfield(L, job, "projection");
    const int section = lua_gettop(L);
    c.x = x;
    c.residual = residual;
    c.bias = (const void *)(p->blob + field_size(L, job, where, "bias_at"));
    c.weights = p->data;
    c.scales = (float *)(void *)(p->blob + field_size(L, section, where, "scales"));
    luaL_argcheck(L, quantise_type_named(field_text(L, section, where, "type", NULL), &c.type), 1, "type");
    const bool good = calibrate(&c);
    free(x);
    if (!good)
        return files_error(p->error, sizeof p->error, "%s: not enough memory for %zu rows", field_text(L, job, where, "x", NULL), c.rows);
    for (size_t i = 0; i < count; ++i)
        p->data[i] += (double)field_size(L, section, where, "raised");
    packing_boxes(p, section, count, c.type, 0);
    packing_note_error(p, errors, field_text(L, section, where, "name", NULL), &(quantise_tally){c.error, c.power});
    lua_newtable(L);
    field_set_number(L, "rows", (double)c.held);
    field_set_number(L, "nearest_flips", (double)c.nearest_flips / (double)c.codes);
    field_set_number(L, "flips", (double)c.flips / (double)c.codes);
    field_set_number(L, "nearest_z_error", c.nearest_z_error);
    field_set_number(L, "z_error", c.z_error);
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
    return true;
}
