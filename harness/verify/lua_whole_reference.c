/* The Lua module `whole_reference`: what stands before and behind the blocks of a whole model, in float64. Values are strings of doubles.

   whole_reference.embed(job, ids) -> x[count][input] | nil, message. job = { weights, type, map_type, activations, width, input, scale,
   words = map, positions = map, first_position, token_types = map, frequencies, halves, max, norm = { gain, offset }, mean, eps, map = map,
   projected = { { map = map, normed }, … }, projected_type, first, first_mean, first_eps, copied } whole_reference.finish(job, x) -> y |
   nil, message. job = { weights, type, activations, width, out, norm, mean, eps, pool, dense = map, activation, dense_norm, dense_mean,
   dense_eps, unit, head = map, soft_cap }; x is the last block's output of one sequence. Maps are { weight = view, bias = view } with views
   as gen/schema/checkpoint_names.lua makes them. */
#include "harness/base/modules.h"
#include "harness/reference/fields.h"
#include "harness/reference/whole.h"
#include "harness/verify/reference_weights.h"

#include "gen/host/fields.h"
#include "gen/host/host.h"
#include "gen/weights/shards.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "whole_reference: ";

enum { ERROR_SIZE = 4096 + 256 };

/* The norm in the field `name` of the job on top of the stack; kind and eps in the other two fields. */
static bool norm_at(lua_State *L, const shards *checkpoint, const char *name, const char *mean, const char *eps, reference_outer_norm *norm,
                    char *error)
{
    lua_getfield(L, -1, name);
    const bool absent = lua_isnil(L, -1);
    lua_pop(L, 1);
    if (absent)
        return true;
    norm->mean = field_flag(L, lua_gettop(L), mean);
    norm->eps = field_number(L, lua_gettop(L), where, eps);
    return reference_norm_at(L, where, checkpoint, name, &norm->weights, error, ERROR_SIZE);
}

static void free_norm(reference_outer_norm *norm)
{
    free(norm->weights.gain);
    free(norm->weights.offset);
}

/* The maps in the list in the field `projected` of the job, if there is one. */
static bool projected_at(lua_State *L, const shards *checkpoint, reference_embedding *e, char *error)
{
    bool ok = true;
    e->projected_type = reference_type_at(L, 1, where, "projected_type", REFERENCE_WEIGHTS);
    e->copied = field_flag(L, 1, "copied");
    const int top = lua_gettop(L);
    const bool there = lua_getfield(L, 1, "projected") == LUA_TTABLE;
    for (size_t n = 0; ok && there && n < sizeof e->projected / sizeof *e->projected; ++n) {
        if (lua_rawgeti(L, top + 1, (lua_Integer)n + 1) == LUA_TTABLE) {
            e->projected[n].normed = field_flag(L, lua_gettop(L), "normed");
            ok = reference_map_at(L, where, checkpoint, "map", &e->projected[n].map, error, ERROR_SIZE);
        }
        lua_settop(L, top + 1);
    }
    lua_settop(L, top);
    return ok;
}

static int embed(lua_State *L)
{
    char error[ERROR_SIZE];
    luaL_checktype(L, 2, LUA_TTABLE);
    const size_t count = (size_t)luaL_len(L, 2);
    int32_t *ids = lua_newuserdatauv(L, (count + 1) * sizeof *ids, 0);
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        ids[i] = (int32_t)luaL_checkinteger(L, -1);
        lua_pop(L, 1);
    }
    lua_pushvalue(L, 1);
    reference_embedding e = {
        .type = reference_type_at(L, 1, where, "type", REFERENCE_WEIGHTS),
        .map_type = reference_type_at(L, 1, where, "map_type", REFERENCE_WEIGHTS),
        .activations = reference_type_at(L, 1, where, "activations", REFERENCE_INPUTS),
        .width = field_size(L, 1, where, "width"),
        .scale = field_number(L, 1, where, "scale"),
        .first_position = field_size(L, 1, where, "first_position"),
        .frequencies = field_size(L, 1, where, "frequencies"),
        .halves = field_flag(L, 1, "halves"),
        .max = field_number(L, 1, where, "max"),
    };
    const size_t input = field_size(L, 1, where, "input");
    shards *checkpoint = shards_open(field_text(L, 1, where, "weights", NULL), error, sizeof error);
    bool ok = checkpoint != NULL;
    ok = ok && reference_map_at(L, where, checkpoint, "words", &e.words, error, sizeof error);
    ok = ok && reference_map_at(L, where, checkpoint, "positions", &e.positions, error, sizeof error);
    ok = ok && reference_map_at(L, where, checkpoint, "token_types", &e.token_types, error, sizeof error);
    ok = ok && reference_map_at(L, where, checkpoint, "map", &e.map, error, sizeof error);
    ok = ok && norm_at(L, checkpoint, "norm", "mean", "eps", &e.norm, error);
    ok = ok && norm_at(L, checkpoint, "first", "first_mean", "first_eps", &e.first, error);
    ok = ok && projected_at(L, checkpoint, &e, error);
    double *x = lua_newuserdatauv(L, (count * input + 1) * sizeof *x, 0);
    ok = ok && reference_embed(&e, ids, count, x, error, sizeof error);
    free_norm(&e.norm);
    free_norm(&e.first);
    shards_close(checkpoint);
    if (!ok)
        return host_fail(L, error);
    lua_pushlstring(L, (const char *)x, count * input * sizeof *x);
    return 1;
}

static int finish(lua_State *L)
{
    static const char *const pools[] = {"none", "mean", "first", "last", "sqrt_n", NULL};
    char error[ERROR_SIZE];
    size_t bytes;
    const double *x = (const double *)(const void *)luaL_checklstring(L, 2, &bytes);
    lua_getfield(L, 1, "pool");
    const reference_pool pool = (reference_pool)luaL_checkoption(L, -1, "none", pools);
    lua_pushvalue(L, 1);
    reference_output o = {
        .type = reference_type_at(L, 1, where, "type", REFERENCE_WEIGHTS),
        .activations = reference_type_at(L, 1, where, "activations", REFERENCE_INPUTS),
        .width = field_size(L, 1, where, "width"),
        .out = field_size(L, 1, where, "out"),
        .pool = pool,
        .activation = reference_activation_named(field_text(L, 1, where, "activation", "none")),
        .unit = field_flag(L, 1, "unit"),
        .soft_cap = field_number(L, 1, where, "soft_cap"),
    };
    luaL_argcheck(L, o.width > 0 && bytes % (o.width * sizeof *x) == 0, 2, "must be whole tokens");
    luaL_argcheck(L, o.activation != NULL, 1, "unknown activation");
    const size_t count = bytes / (o.width * sizeof *x), rows = pool == REFERENCE_POOL_NONE ? count : 1;
    shards *checkpoint = shards_open(field_text(L, 1, where, "weights", NULL), error, sizeof error);
    bool ok = checkpoint != NULL;
    ok = ok && reference_map_at(L, where, checkpoint, "dense", &o.dense, error, sizeof error);
    ok = ok && reference_map_at(L, where, checkpoint, "head", &o.head, error, sizeof error);
    ok = ok && norm_at(L, checkpoint, "norm", "mean", "eps", &o.norm, error);
    ok = ok && norm_at(L, checkpoint, "dense_norm", "dense_mean", "dense_eps", &o.dense_norm, error);
    double *y = lua_newuserdatauv(L, (rows * o.out + 1) * sizeof *y, 0);
    ok = ok && reference_finish(&o, x, count, y, error, sizeof error);
    free_norm(&o.norm);
    free_norm(&o.dense_norm);
    shards_close(checkpoint);
    if (!ok)
        return host_fail(L, error);
    lua_pushlstring(L, (const char *)y, rows * o.out * sizeof *y);
    return 1;
}

int luaopen_whole_reference(lua_State *L)
{
    static const luaL_Reg functions[] = {{"embed", embed}, {"finish", finish}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
