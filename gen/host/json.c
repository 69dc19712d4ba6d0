/* The Lua module `json`: text to tables and back, with sorted keys so that equal tables give equal bytes. */
#include "gen/host/host.h"

#include <jansson.h>
#include <lauxlib.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 100, MESSAGE_SIZE = 256 };

#define ARRAY "json.array"

/* What is wrong with the value under key, in one line. */
static json_t *refuse(char *message, const char *key, const char *rule)
{
    snprintf(message, MESSAGE_SIZE, "JSON: %s%s%s", key, *key == '\0' ? "" : ": ", rule);
    return NULL;
}

static bool is_array(lua_State *L)
{
    bool marked = false;
    if (lua_getmetatable(L, -1)) {
        luaL_getmetatable(L, ARRAY);
        marked = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    const bool first = lua_rawgeti(L, -1, 1) != LUA_TNIL;
    lua_pop(L, 1);
    return marked || first;
}

static json_t *to_json(lua_State *L, const char *key, int depth, char *message);

static json_t *array_to_json(lua_State *L, const char *key, int depth, char *message)
{
    const lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    lua_Integer keys = 0;
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1))
        ++keys;
    if (keys != count)
        return refuse(message, key, "an array must have the keys 1 to n and no others");
    json_t *array = json_array();
    for (lua_Integer i = 1; i <= count; ++i) {
        lua_rawgeti(L, -1, i);
        json_t *value = to_json(L, key, depth + 1, message);
        lua_pop(L, 1);
        if (value == NULL) {
            json_decref(array);
            return NULL;
        }
        json_array_append_new(array, value);
    }
    return array;
}

static json_t *object_to_json(lua_State *L, const char *key, int depth, char *message)
{
    json_t *object = json_object();
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        size_t length = 0;
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tolstring(L, -2, &length) : NULL;
        json_t *value = name == NULL ? refuse(message, key, "an object must have strings as keys") : to_json(L, name, depth + 1, message);
        if (value != NULL && json_object_setn_new(object, name, length, value) != 0)
            value = refuse(message, key, "has a key that is not UTF-8");
        if (value == NULL) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* The value on top of the stack, which stands under key in its table; NULL with a message if JSON has no word for it. */
static json_t *to_json(lua_State *L, const char *key, int depth, char *message)
{
    if (depth > DEPTH_LIMIT)
        return refuse(message, key, "is nested too deep, or inside itself");
    luaL_checkstack(L, 8, NULL);
    switch (lua_type(L, -1)) {
    case LUA_TBOOLEAN: return json_boolean(lua_toboolean(L, -1));
    case LUA_TLIGHTUSERDATA: return json_null();
    case LUA_TNUMBER: {
        if (lua_isinteger(L, -1))
            return json_integer(lua_tointeger(L, -1));
        const double number = lua_tonumber(L, -1);
        return isfinite(number) ? json_real(number) : refuse(message, key, "is not a finite number");
    }
    case LUA_TSTRING: {
        size_t length;
        const char *text = lua_tolstring(L, -1, &length);
        json_t *string = json_stringn(text, length);
        return string != NULL ? string : refuse(message, key, "is not UTF-8");
    }
    case LUA_TTABLE: return is_array(L) ? array_to_json(L, key, depth, message) : object_to_json(L, key, depth, message);
    default: return refuse(message, key, "must be a table, a string, a number or a boolean");
    }
}

/* json.encode(value [, "compact"]) -> text without a newline at its end | nil, message */
static int json_encode(lua_State *L)
{
    char message[MESSAGE_SIZE];
    luaL_checkany(L, 1);
    const bool compact = strcmp(luaL_optstring(L, 2, ""), "compact") == 0;
    lua_settop(L, 1);
    json_t *root = to_json(L, "", 0, message);
    if (root == NULL) {
        lua_pushnil(L);
        lua_pushstring(L, message);
        return 2;
    }
    char *text = json_dumps(root, JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) | (compact ? JSON_COMPACT : JSON_INDENT(2)));
    json_decref(root);
    if (text == NULL)
        return luaL_error(L, "not enough memory");
    lua_pushstring(L, text);
    free(text);
    return 1;
}

static void push_json(lua_State *L, json_t *value)
{
    luaL_checkstack(L, 8, NULL);
    switch (json_typeof(value)) {
    case JSON_OBJECT: {
        const char *key;
        json_t *member;
        lua_newtable(L);
        json_object_foreach (value, key, member) {
            push_json(L, member);
            lua_setfield(L, -2, key);
        }
        break;
    }
    case JSON_ARRAY: {
        const size_t count = json_array_size(value);
        lua_newtable(L);
        luaL_setmetatable(L, ARRAY);
        for (size_t i = 0; i < count; ++i) {
            push_json(L, json_array_get(value, i));
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        break;
    }
    case JSON_STRING: lua_pushlstring(L, json_string_value(value), json_string_length(value)); break;
    case JSON_INTEGER: lua_pushinteger(L, json_integer_value(value)); break;
    case JSON_REAL: lua_pushnumber(L, json_real_value(value)); break;
    case JSON_TRUE: lua_pushboolean(L, 1); break;
    case JSON_FALSE: lua_pushboolean(L, 0); break;
    case JSON_NULL: lua_pushlightuserdata(L, NULL); break;
    }
}

/* json.decode(text) -> value | nil, "line:column: message" */
static int json_decode(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    json_error_t error;
    const size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* some editors put it there */
    json_t *root = json_loadb(text + mark, size - mark, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (root == NULL) {
        lua_pushnil(L);
        const enum json_error_code code = json_error_code(&error);
        const char *rule = code == json_error_null_character     ? "a string has the character U+0000"
                           : code == json_error_null_byte_in_key ? "a key has the character U+0000"
                                                                 : error.text;
        lua_pushfstring(L, "%d:%d: %s", error.line, error.column, rule);
        return 2;
    }
    push_json(L, root);
    json_decref(root);
    return 1;
}

/* json.array(table) -> the same table, marked as an array: an empty one becomes [], not {} */
static int json_mark_array(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    luaL_setmetatable(L, ARRAY);
    return 1;
}

int luaopen_json(lua_State *L)
{
    static const luaL_Reg functions[] = {{"encode", json_encode}, {"decode", json_decode}, {"array", json_mark_array}, {NULL, NULL}};
    luaL_newmetatable(L, ARRAY);
    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    return 1;
}
