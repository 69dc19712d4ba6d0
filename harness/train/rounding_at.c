/* Reads how a tensor is rounded; see rounding_at.h. */
#include "harness/train/rounding_at.h"

#include "gen/host/fields.h"
#include "gen/weights/fold_fields.h"

#include <lauxlib.h>
#include <string.h>

static const char where[] = "rounding: ";

/* Adds a step of folding, in the table at the top of the stack. */
static void read_step(lua_State *L, rounding *to, size_t count)
{
    const int top = lua_gettop(L);
    const char *step = field_text(L, top, where, "step", NULL);
    if (strcmp(step, "hadamard") == 0) {
        to->hadamard = field_size(L, top, where, "size");
        luaL_argcheck(L, to->hadamard && count % (to->hadamard * to->hadamard) == 0, 1, "size");
    } else if (strcmp(step, "scale") == 0) {
        to->at = field_size(L, top, where, "at");
        to->factor = field_number(L, top, where, "factor");
        to->rank = fold_field_dims(L, top, where, "by", to->dims);
        luaL_argcheck(L, to->rank && to->at + fold_farthest(to->dims, to->rank, true) < count, 1, "scale");
    } else {
        luaL_error(L, "%s%s: is no step of folding alone", where, step);
    }
}

bool rounding_at(lua_State *L, int table, const char *name, size_t count, rounding *to)
{
    *to = (rounding){0};
    if (lua_getfield(L, table, name) != LUA_TTABLE) {
        lua_pop(L, 1);
        return false;
    }
    const int top = lua_gettop(L);
    luaL_argcheck(L, quantise_type_named(field_text(L, top, where, "type", NULL), &to->type), 1, "type");
    to->row = field_size(L, top, where, "row");
    luaL_argcheck(L, to->row && count % to->row == 0, 1, "row");
    lua_getfield(L, top, "steps");
    for (lua_Integer i = 1; lua_rawgeti(L, top + 1, i) == LUA_TTABLE; ++i) {
        read_step(L, to, count);
        lua_settop(L, top + 1);
    }
    lua_settop(L, top - 1);
    return true;
}
