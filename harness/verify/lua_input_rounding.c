/* The Lua module `input_rounding`: rounds the maps that the reference runs for the inputs that they have there.

   input_rounding.new(seen) -> rounding: seen(name of a tensor) -> "i4", "u4" or nil: how to round a map out of it, if at all; it must not
   raise errors.
   rounding:pointer() -> what goes into the field stand_in of a job of block_reference or whole_reference: maps are then rounded, each for
   the inputs that those before it bring, rounded as they are; rounding must outlive it.
   rounding:map(path, map, x) -> true | nil, message: rounds the map { weight = view } of the checkpoint for x, a string of doubles.
   rounding:given() -> the integers and scales, for weights.quantise
   rounding:errors() -> of outputs of all maps, relatively: rounded to the nearest, and for the inputs */
#include "harness/base/modules.h"
#include "harness/verify/reference_weights.h"

#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/weights/matmul.h"
#include "gen/weights/round_checkpoint.h"
#include "gen/weights/round_for_inputs.h"

#include <lauxlib.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "input_rounding: ", metatable[] = "lookupc.input_rounding";

enum { ERROR_SIZE = 4096 + 256 };

typedef struct {
    reference_stand_in base;
    lua_State *L; /* whose registry has `seen` under the address of this */
    rounded_given_list given;
    double power, nearest, error; /* sums over maps, each of which counts as much: relative squares */
    size_t maps;
} rounding;

/* The place for the rows of a tensor; NULL: memory is short. */
static rounded_given *given_of(rounding *r, const safetensors_tensor *tensor, size_t width, bool minimum)
{
    for (size_t i = 0; i < r->given.count; ++i)
        if (strcmp(r->given.list[i].name, tensor->name) == 0)
            return &r->given.list[i];
    const size_t rows = tensor->count / width, numbers = (width + SAFETENSORS_GROUP - 1) / SAFETENSORS_GROUP * (minimum ? 2 : 1);
    rounded_given *const more = realloc(r->given.list, (r->given.count + 1) * sizeof *more);
    if (!more)
        return NULL;
    r->given.list = more;
    rounded_given *const own = &more[r->given.count];
    *own = (rounded_given){strdup(tensor->name), malloc(rows * width / 2 + 1), malloc(rows * numbers * sizeof(uint16_t) + 1),
                           calloc(rows + 1, sizeof(bool))};
    if (own->name && own->halves && own->scales && own->known) {
        ++r->given.count;
        return own;
    }
    rounded_given_free(own);
    return NULL;
}

/* Puts the rows of a map into their places of its tensor. */
static bool keep(rounding *r, const reference_map *map, const rounded_matrix *m)
{
    rounded_given *const given = given_of(r, map->weight, m->columns, m->minimum);
    const size_t bytes = m->columns / 2, numbers = (m->columns + SAFETENSORS_GROUP - 1) / SAFETENSORS_GROUP * (m->minimum ? 2 : 1);
    for (size_t row = 0; given && row < m->rows; ++row) {
        const size_t to = reference_map_row(map, row);
        memcpy(given->halves + to * bytes, m->halves + row * bytes, bytes);
        memcpy(given->scales + to * numbers, m->scales + row * numbers, numbers * sizeof *m->scales);
        given->known[to] = true;
    }
    return given != NULL;
}

/* What is to be rounded to the form for so many inputs: the map's weights, which `weights` has room for. */
static rounded_matrix matrix_of(const reference_map *map, rounded_form form, double *weights, size_t inputs)
{
    return (rounded_matrix){
        .rows = map->rows, .columns = map->columns, .minimum = form == ROUNDED_U4, .weights = weights, .inputs = inputs};
}

/* m.weights <- the map's, rounded for x[m.inputs][columns], which are kept. False with one line. */
static bool round_map(rounding *r, const reference_map *map, rounded_matrix m, const double *x, char *error, size_t size)
{
    const size_t n = m.columns, groups = (n + SAFETENSORS_GROUP - 1) / SAFETENSORS_GROUP;
    m.moments = calloc(n * n + 1, sizeof *m.moments);
    m.halves = calloc(m.rows * n / 2 + 1, 1);
    m.scales = malloc((m.rows * groups * 2 + 1) * sizeof *m.scales);
    bool ok = m.moments && m.halves && m.scales;
    round_for_inputs_result result = ROUND_FOR_INPUTS_NO_MEMORY;
    if (ok && (ok = reference_map_matrix(map, m.weights, error, size))) {
        matmul_add(1.0, (matmul_sizes){n, n, m.inputs}, (matmul_matrix){x, 1, n}, (matmul_matrix){x, n, 1}, m.moments, n);
        result = round_for_inputs(&m);
        if (result == ROUND_FOR_INPUTS_DONE && !keep(r, map, &m))
            result = ROUND_FOR_INPUTS_NO_MEMORY;
        ok = result == ROUND_FOR_INPUTS_DONE;
        if (m.power > 0.0) {
            r->nearest += m.nearest_error / m.power;
            r->error += m.error / m.power;
            r->maps++;
        }
        if (result == ROUND_FOR_INPUTS_TOO_LARGE)
            files_error(error, size, "%s: tensor %s: a value is too large", safetensors_path(map->file), map->weight->name);
    }
    if (!ok && result == ROUND_FOR_INPUTS_NO_MEMORY)
        files_error(error, size, "%s: tensor %s: not enough memory", safetensors_path(map->file), map->weight->name);
    free(m.moments);
    free(m.halves);
    free(m.scales);
    return ok;
}

/* The form that `seen` wants for a map's tensor. */
static rounded_form form_of(rounding *r, const reference_map *map)
{
    lua_rawgetp(r->L, LUA_REGISTRYINDEX, r);
    lua_pushstring(r->L, map->weight->name);
    lua_call(r->L, 1, 1);
    const rounded_form form = lua_isstring(r->L, -1) ? rounded_form_named(lua_tostring(r->L, -1)) : ROUNDED_NOT;
    lua_pop(r->L, 1);
    return map->transposed || map->columns % 2 ? ROUNDED_NOT : form;
}

static bool apply(const reference_stand_in *base, const reference_map *map, const double *x, double *y, size_t tokens, char *error,
                  size_t size)
{
    rounding *const r = (rounding *)base; /* its first member, of a userdata */
    const rounded_form form = form_of(r, map);
    const size_t n = map->columns;
    double *const matrix = malloc((map->rows * n + 1) * sizeof *matrix);
    if (!matrix)
        return files_error(error, size, "%s: not enough memory", safetensors_path(map->file));
    const rounded_matrix m = matrix_of(map, form, matrix, tokens);
    bool ok = form == ROUNDED_NOT ? reference_map_matrix(map, matrix, error, size) : round_map(r, map, m, x, error, size);
    for (size_t row = 0; ok && row < map->rows; ++row) {
        double bias = 0.0;
        ok = !map->bias || safetensors_read(map->bias_file, map->bias, reference_map_row(map, row), 1, &bias, error, size);
        for (size_t t = 0; t < tokens; ++t)
            y[t * map->rows + row] = bias;
    }
    if (ok)
        matmul_add(1.0, (matmul_sizes){tokens, map->rows, n}, (matmul_matrix){x, n, 1}, (matmul_matrix){matrix, 1, n}, y, map->rows);
    free(matrix);
    return ok;
}

static rounding *rounding_at(lua_State *L)
{
    return luaL_checkudata(L, 1, metatable);
}

static int pointer(lua_State *L)
{
    lua_pushlightuserdata(L, &rounding_at(L)->base);
    return 1;
}

static int map_for(lua_State *L)
{
    char error[ERROR_SIZE];
    rounding *const r = rounding_at(L);
    size_t bytes;
    const double *const x = (const double *)(const void *)luaL_checklstring(L, 4, &bytes);
    reference_map map;
    lua_settop(L, 4);
    lua_newtable(L);
    lua_pushvalue(L, 3);
    lua_setfield(L, 5, "map");
    shards *const checkpoint = shards_open(luaL_checkstring(L, 2), error, sizeof error);
    bool ok = checkpoint && reference_map_at(L, where, checkpoint, "map", &map, error, sizeof error);
    const rounded_form form = ok ? form_of(r, &map) : ROUNDED_NOT;
    if (form != ROUNDED_NOT) {
        double *const matrix = malloc((map.rows * map.columns + 1) * sizeof *matrix);
        ok = matrix ? round_map(r, &map, matrix_of(&map, form, matrix, bytes / (map.columns * sizeof *x)), x, error, sizeof error)
                    : files_error(error, sizeof error, "%s: not enough memory", safetensors_path(map.file));
        free(matrix);
    }
    shards_close(checkpoint);
    if (!ok)
        return host_fail(L, error);
    lua_pushboolean(L, 1);
    return 1;
}

static int given(lua_State *L)
{
    lua_pushlightuserdata(L, &rounding_at(L)->given);
    return 1;
}

static int errors(lua_State *L)
{
    const rounding *const r = rounding_at(L);
    const double maps = r->maps > 0 ? (double)r->maps : 1.0;
    lua_pushnumber(L, sqrt(r->nearest / maps));
    lua_pushnumber(L, sqrt(r->error / maps));
    return 2;
}

static int collect(lua_State *L)
{
    rounding *const r = rounding_at(L);
    for (size_t i = 0; i < r->given.count; ++i)
        rounded_given_free(&r->given.list[i]);
    free(r->given.list);
    r->given = (rounded_given_list){0};
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, r);
    return 0;
}

static int new (lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    rounding *const r = lua_newuserdatauv(L, sizeof *r, 0);
    *r = (rounding){.base = {apply}, .L = L};
    luaL_setmetatable(L, metatable);
    lua_pushvalue(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, r);
    return 1;
}

int luaopen_input_rounding(lua_State *L)
{
    static const luaL_Reg methods[] = {{"pointer", pointer}, {"map", map_for},  {"given", given},
                                       {"errors", errors},   {"__gc", collect}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"new", new}, {NULL, NULL}};
    luaL_newmetatable(L, metatable);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    return 1;
}
