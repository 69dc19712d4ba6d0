/* Finds the weights that the reference of transformers reads: maps and norms of a checkpoint, as tables of Lua describe them. */
#include "harness/verify/reference_weights.h"

#include "gen/host/fields.h"

#include <lauxlib.h>

/* Where a view of a job lies; NULL tensor with one line on failure. */
static const safetensors_tensor *view_at(lua_State *L, const char *where, const shards *checkpoint, int index, const safetensors **file,
                                         char *error, size_t error_size)
{
    int64_t shape[SAFETENSORS_MAX_RANK];
    const int rank = field_dimensions(L, index, "shape", shape, SAFETENSORS_MAX_RANK);
    const shards_wanted wanted = {.name = field_text(L, index, where, "tensor", NULL), .shape = shape, .rank = rank};
    return shards_expect(checkpoint, wanted, file, error, error_size);
}

bool reference_map_at(lua_State *L, const char *where, const shards *checkpoint, const char *name, reference_map *map, char *error,
                      size_t error_size)
{
    const int layer = lua_gettop(L);
    bool ok = true;
    lua_getfield(L, 1, "stand_in");
    *map = (reference_map){.stand_in = lua_touserdata(L, -1)};
    lua_pop(L, 1);
    if (lua_getfield(L, layer, name) == LUA_TTABLE) {
        lua_getfield(L, layer + 1, "weight");
        const int view = lua_gettop(L);
        map->rows = field_size(L, view, where, "rows");
        map->columns = field_size(L, view, where, "columns");
        map->group = field_size(L, view, where, "group");
        map->stride = field_size(L, view, where, "stride");
        map->offset = field_size(L, view, where, "offset");
        map->transposed = field_flag(L, view, "transposed");
        map->weight = view_at(L, where, checkpoint, view, &map->file, error, error_size);
        ok = map->weight != NULL;
        const bool has_bias = lua_getfield(L, layer + 1, "bias") == LUA_TTABLE;
        const int bias = lua_gettop(L);
        if (ok && has_bias && shards_have(checkpoint, field_text(L, bias, where, "tensor", NULL))) {
            map->bias = view_at(L, where, checkpoint, bias, &map->bias_file, error, error_size);
            ok = map->bias != NULL;
        }
    }
    lua_settop(L, layer);
    return ok;
}

bool reference_norm_at(lua_State *L, const char *where, const shards *checkpoint, const char *name, reference_block_norm *norm, char *error,
                       size_t error_size)
{
    const int layer = lua_gettop(L);
    const char *parts[] = {"gain", "offset"};
    double **to[] = {&norm->gain, &norm->offset};
    bool ok = true;
    if (lua_getfield(L, layer, name) == LUA_TTABLE)
        for (int i = 0; ok && i < 2; ++i, lua_settop(L, layer + 1)) {
            const safetensors *file;
            if (lua_getfield(L, layer + 1, parts[i]) != LUA_TTABLE)
                continue;
            const safetensors_tensor *tensor = view_at(L, where, checkpoint, layer + 2, &file, error, error_size);
            *to[i] = tensor ? safetensors_load(file, tensor, error, error_size) : NULL;
            ok = *to[i] != NULL;
            const double raised = (double)field_size(L, layer + 2, where, "raised");
            for (size_t k = 0; ok && k < tensor->count; ++k)
                (*to[i])[k] += raised;
        }
    lua_settop(L, layer);
    return ok;
}
