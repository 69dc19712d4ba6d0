/* Walks over tensors out of Lua tables; see fold_fields.h. */
#include "gen/weights/fold_fields.h"

#include "gen/host/fields.h"

#include <lauxlib.h>

int fold_field_dims(lua_State *L, int table, const char *where, const char *to, fold_dim *dims)
{
    lua_getfield(L, table, "dims");
    const int rank = (int)lua_rawlen(L, -1);
    luaL_argcheck(L, rank <= FOLD_MAX_DIMS, 1, "dims");
    for (int i = 0; i < rank; ++i) {
        lua_rawgeti(L, -1, i + 1);
        const int row = lua_gettop(L);
        dims[i] = (fold_dim){field_size(L, row, where, "count"), field_size(L, row, where, "from"), field_size(L, row, where, to)};
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return rank;
}

size_t fold_farthest(const fold_dim *dims, int rank, bool from)
{
    size_t last = 0;
    for (int i = 0; i < rank; ++i)
        last += dims[i].count ? (dims[i].count - 1) * (from ? dims[i].from : dims[i].to) : 0;
    return last;
}
