/* Sections that are sines and cosines of positions, or whose rows are a projection of other rows: those of a tensor, sines and cosines of
   positions, or a row of zeros. */
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/weights/matmul.h"
#include "gen/weights/packing.h"
#include "gen/weights/view.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "weights: ";

/* Positions as sines and cosines: angle i of a position is position max^(-i / steps). */
typedef struct {
    size_t columns, steps;
    double max;
    bool halves; /* all sines and then all cosines, or a sine and a cosine in turn */
} sinusoids;

/* Those that the fields sinusoids = "halves" | "interleaved", columns, steps_of and max of a table describe. */
static sinusoids sinusoids_at(lua_State *L, int table)
{
    const sinusoids s = {.columns = field_size(L, table, where, "columns"),
                         .steps = field_size(L, table, where, "steps_of"),
                         .max = field_number(L, table, where, "max"),
                         .halves = strcmp(field_text(L, table, where, "sinusoids", NULL), "halves") == 0};
    luaL_argcheck(L, s.columns > 0 && s.columns % 2 == 0 && s.steps > 0, 1, "sinusoids");
    return s;
}

/* Element k of these, [positions][columns]. */
static double sinusoid(const sinusoids *s, size_t k)
{
    const size_t half = s->columns / 2, column = k % s->columns, i = s->halves ? column % half : column / 2;
    const double angle = (double)(k / s->columns) * pow(s->max, -(double)i / (double)s->steps);
    return (s->halves ? column < half : column % 2 == 0) ? sin(angle) : cos(angle);
}

bool packing_sinusoids(packing *p, int section, int errors)
{
    (void)errors;
    lua_State *L = p->L;
    const size_t elements = field_size(L, section, where, "elements"), at = field_size(L, section, where, "at");
    const sinusoids s = sinusoids_at(L, section);
    luaL_argcheck(L, at + elements * sizeof(float) <= p->blob_bytes, 1, "sinusoids");
    float *to = (float *)(void *)(p->blob + at);
    for (size_t k = 0; k < elements; ++k)
        to[k] = (float)sinusoid(&s, k);
    return true;
}

/* The view in the field `name` of a table, if there is one: v->tensor is NULL without. */
static bool optional_view(packing *p, int table, const char *name, view *v)
{
    lua_State *L = p->L;
    *v = (view){0};
    const bool there = lua_getfield(L, table, name) == LUA_TTABLE;
    const bool ok = !there || view_at(L, lua_gettop(L), "tensor", (view_source){p->checkpoint, p->prefix}, v, p->error, sizeof p->error);
    lua_pop(L, 1);
    return ok;
}

/* What `packing_projected` multiplies rows by, and what it adds: m [outputs][columns] = the weights, times gains of their columns, less the
   mean of each row where rows are taken as differences from theirs; plus [columns], to every row before; bias [outputs], behind. */
typedef struct {
    size_t outputs, columns;
    double *m, *plus, *bias;
} row_projection;

static bool read_view(packing *p, const view *v, double *to)
{
    return !v->tensor || view_read(v, 0, v->rows, to, p->error, sizeof p->error);
}

/* The projection that the table at `job` describes, in memory that Lua frees. */
static bool projection_at(packing *p, int job, row_projection *made)
{
    lua_State *L = p->L;
    view weight, gain, plus, bias;
    if (!optional_view(p, job, "weight", &weight) || !optional_view(p, job, "gain", &gain) || !optional_view(p, job, "plus", &plus))
        return false;
    lua_getfield(L, job, "bias");
    const bool biased = lua_istable(L, -1) && shards_have(p->checkpoint, field_text(L, lua_gettop(L), where, "tensor", NULL));
    lua_pop(L, 1);
    bias = (view){0};
    if (biased && !optional_view(p, job, "bias", &bias))
        return false;
    const size_t outputs = weight.rows, columns = weight.columns;
    luaL_argcheck(L, !gain.tensor || gain.rows * gain.columns == columns, 1, "gain");
    luaL_argcheck(L, !plus.tensor || plus.columns == columns, 1, "plus");
    luaL_argcheck(L, !bias.tensor || bias.rows * bias.columns == outputs, 1, "bias");
    *made = (row_projection){.outputs = outputs, .columns = columns, .m = lua_newuserdatauv(L, outputs * columns * sizeof(double), 0)};
    double *vectors = lua_newuserdatauv(L, (2 * columns + outputs) * sizeof *vectors, 0), *gains = vectors + columns + outputs;
    made->plus = vectors;
    made->bias = vectors + columns;
    for (size_t i = 0; i < columns + outputs; ++i)
        vectors[i] = 0.0;
    for (size_t i = 0; i < columns; ++i)
        gains[i] = 1.0;
    plus.rows = 1; /* the first row */
    if (!read_view(p, &weight, made->m) || !read_view(p, &gain, gains) || !read_view(p, &plus, made->plus) ||
        !read_view(p, &bias, made->bias))
        return false;
    for (size_t i = 0; gain.tensor && i < columns; ++i)
        gains[i] += gain.raised;
    for (size_t i = 0; plus.tensor && i < columns; ++i)
        made->plus[i] *= field_number(L, job, where, "plus_factor");
    const bool centred = field_flag(L, job, "centred");
    for (size_t o = 0; o < outputs; ++o) {
        double *row = made->m + o * columns, mean = 0.0;
        for (size_t i = 0; i < columns; ++i)
            mean += (row[i] *= gains[i]) / (double)columns;
        for (size_t i = 0; centred && i < columns; ++i)
            row[i] -= mean;
    }
    return true;
}

bool packing_projected(packing *p, int section, int errors)
{
    enum { TOGETHER = 64 }; /* rows */
    lua_State *L = p->L;
    const int job = lua_gettop(L);
    quantise_type type;
    luaL_argcheck(L, quantise_type_named(field_text(L, section, where, "type", NULL), &type), 1, "type");
    const size_t elements = field_size(L, section, where, "elements"), at = field_size(L, section, where, "at");
    const bool scaled = quantise_scaled(type), sines = lua_getfield(L, job, "sinusoids") == LUA_TSTRING;
    const size_t scales = scaled ? field_size(L, section, where, "scales") : 0;
    const sinusoids s = sines ? sinusoids_at(L, job) : (sinusoids){0};
    view from;
    row_projection by;
    if (!optional_view(p, job, "view", &from) || !projection_at(p, job, &by))
        return false;
    const size_t rows = elements / by.outputs;
    luaL_argcheck(L, at + quantise_size(type, elements) <= p->blob_bytes && elements % by.outputs == 0, 1, "at");
    luaL_argcheck(L, !scaled || scales + rows * sizeof(float) <= p->blob_bytes, 1, "scales");
    luaL_argcheck(L, !from.tensor || (from.rows == rows && from.columns == by.columns), 1, "view");
    free(p->data);
    p->data = malloc(TOGETHER * (by.columns + by.outputs) * sizeof *p->data);
    if (!p->data)
        return files_error(p->error, sizeof p->error, "%s: not enough memory", p->path);
    double *in = p->data, *out = in + TOGETHER * by.columns;
    p->tally = (quantise_tally){0};
    for (size_t row = 0, count; row < rows; row += count) {
        count = rows - row < TOGETHER ? rows - row : TOGETHER;
        for (size_t i = 0; i < count * by.columns; ++i)
            in[i] = sines ? sinusoid(&s, row * by.columns + i) : 0.0;
        if (from.tensor && !view_read(&from, row, count, in, p->error, sizeof p->error))
            return false;
        for (size_t i = 0; i < count * by.columns; ++i)
            in[i] += by.plus[i % by.columns];
        for (size_t i = 0; i < count * by.outputs; ++i)
            out[i] = by.bias[i % by.outputs];
        matmul_add(1.0, (matmul_sizes){count, by.outputs, by.columns}, (matmul_matrix){in, by.columns, 1},
                   (matmul_matrix){by.m, 1, by.columns}, out, by.outputs);
        if (!quantise_round(type, out, count, by.outputs, (float *)(void *)(p->blob + scales) + row, &p->tally))
            return files_error(p->error, sizeof p->error, "%s: %s: a folded value is too large for %s", p->path,
                               field_text(L, section, where, "name", NULL), field_text(L, section, where, "type", NULL));
        for (size_t i = 0; i < count * by.outputs; ++i)
            quantise_store(type, out[i], p->blob + at, row * by.outputs + i);
    }
    packing_note_error(p, errors, field_text(L, section, where, "name", NULL), &p->tally);
    return true;
}
