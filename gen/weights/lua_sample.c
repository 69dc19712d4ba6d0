/* The function `sample` of the Lua module `weights`: random checkpoints. */
#include "gen/weights/lua_sample.h"

#include "gen/host/fields.h"
#include "gen/host/host.h"
#include "gen/weights/random.h"
#include "gen/weights/safetensors.h"

#include <lauxlib.h>

static const char where[] = "weights: ";

enum { ERROR_SIZE = 4096 + 256, RANDOM_VALUES = 4096 };

/* Appends count values, with room for RANDOM_VALUES in values. */
static bool append_random(safetensors_writer *writer, lua_State *L, int tensor, size_t count, random_state *random, float *values,
                          char *error)
{
    const double mean = field_number(L, tensor, where, "mean"), deviation = field_number(L, tensor, where, "deviation");
    const size_t zero_every = field_size(L, tensor, where, "zero_every"), columns = field_size(L, tensor, where, "diagonal");
    const size_t group = field_size(L, tensor, where, "group"), stride = field_size(L, tensor, where, "stride");
    const size_t width = field_size(L, tensor, where, "transposed");
    for (size_t done = 0; done < count;) {
        const size_t n = count - done < RANDOM_VALUES ? count - done : RANDOM_VALUES;
        random_fill(random, values, n, mean, deviation);
        for (size_t i = 0; zero_every && i < n; ++i)
            if ((done + i) % zero_every == 0)
                values[i] = 0;
        for (size_t i = 0; columns && i < n; ++i) {
            const size_t at = done + i, row = width ? at % width : at / columns, column = width ? at / width : at % columns;
            const size_t own = stride ? row / stride * group + row % group : row;
            if (column == own % columns)
                values[i] += 1.0f;
        }
        if (!safetensors_append(writer, values, n * sizeof *values, error, ERROR_SIZE))
            return false;
        done += n;
    }
    return true;
}

int weights_sample(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1), *prefix = luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    random_state random = random_seed((uint64_t)luaL_checkinteger(L, 4));
    char error[ERROR_SIZE];
    const size_t count = lua_rawlen(L, 3);
    safetensors_description *descriptions = lua_newuserdatauv(L, (count + 1) * sizeof *descriptions, 0);
    size_t *counts = lua_newuserdatauv(L, (count + 1) * sizeof *counts, 0);
    float *values = lua_newuserdatauv(L, RANDOM_VALUES * sizeof *values, 0);
    lua_createtable(L, (int)count, 0); /* keeps the names */
    const int top = lua_gettop(L);
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        const int tensor = lua_gettop(L);
        const char *name = lua_pushfstring(L, "%s%s", prefix, field_text(L, tensor, where, "name", NULL));
        lua_rawseti(L, top, (lua_Integer)i + 1);
        descriptions[i] = (safetensors_description){.name = name, .dtype = DTYPE_F32};
        descriptions[i].rank = field_dimensions(L, tensor, "shape", descriptions[i].shape, SAFETENSORS_MAX_RANK);
        counts[i] = 1;
        for (int k = 0; k < descriptions[i].rank; ++k)
            counts[i] *= (size_t)descriptions[i].shape[k];
        lua_settop(L, top);
    }
    safetensors_writer *writer = safetensors_create(path, descriptions, count, error, sizeof error);
    if (!writer)
        return host_fail(L, error);
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        if (!append_random(writer, L, lua_gettop(L), counts[i], &random, values, error)) {
            safetensors_abandon(writer);
            return host_fail(L, error);
        }
        lua_settop(L, top);
    }
    if (!safetensors_finish(writer, error, sizeof error))
        return host_fail(L, error);
    lua_pushboolean(L, true);
    return 1;
}
