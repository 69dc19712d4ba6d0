/* Fields of the Lua tables that jobs are made of. */
#include "gen/host/fields.h"

#include <lauxlib.h>

lua_Integer field_integer(lua_State *L, int index, const char *where, const char *name, lua_Integer least, lua_Integer otherwise)
{
    lua_Integer value = otherwise;
    int is_integer = 1;
    if (lua_getfield(L, index, name) != LUA_TNIL)
        value = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer || value < least)
        luaL_error(L, "%s%s: must be an integer, at least %I", where, name, (LUAI_UACINT)least);
    lua_pop(L, 1);
    return value;
}

size_t field_size(lua_State *L, int index, const char *where, const char *name)
{
    return (size_t)field_integer(L, index, where, name, 0, 0);
}

double field_number(lua_State *L, int index, const char *where, const char *name)
{
    int is_number = 0;
    lua_getfield(L, index, name);
    const double value = lua_tonumberx(L, -1, &is_number);
    if (!is_number)
        luaL_error(L, "%s%s: must be a number", where, name);
    lua_pop(L, 1);
    return value;
}

bool field_flag(lua_State *L, int index, const char *name)
{
    lua_getfield(L, index, name);
    const bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

const char *field_text(lua_State *L, int index, const char *where, const char *name, const char *otherwise)
{
    const int type = lua_getfield(L, index, name);
    if (type != LUA_TSTRING && !(type == LUA_TNIL && otherwise))
        luaL_error(L, "%s%s: must be a string", where, name);
    const char *text = type == LUA_TSTRING ? lua_tostring(L, -1) : otherwise;
    lua_pop(L, 1);
    return text;
}

int field_dimensions(lua_State *L, int index, const char *name, int64_t *dimensions, size_t most)
{
    lua_getfield(L, index, name);
    const size_t count = lua_rawlen(L, -1);
    luaL_argcheck(L, count <= most, 1, name);
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        dimensions[i] = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return (int)count;
}

void field_set_size(lua_State *L, const char *name, size_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, name);
}

void field_set_number(lua_State *L, const char *name, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

void field_set_flag(lua_State *L, const char *name, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, name);
}

void field_set_text(lua_State *L, const char *name, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, name);
}
