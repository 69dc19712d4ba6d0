/* The function `metadata` of the Lua module `weights`: what a GGUF file says beside its tensors. */
#include "gen/weights/lua_gguf.h"

#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/weights/gguf.h"

#include <lauxlib.h>
#include <string.h>

enum { ERROR_SIZE = 1024 };

/* Moves *at on over `bytes`, of which it returns a copy as a number of up to 8 bytes. */
static uint64_t next(const unsigned char **at, size_t bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, *at, bytes);
    *at += bytes;
    return bits;
}

/* A whole number of `bytes`, with a sign. */
static int64_t next_signed(const unsigned char **at, size_t bytes)
{
    const unsigned unused = 64 - 8 * (unsigned)bytes;
    const uint64_t bits = next(at, bytes) << unused;
    int64_t number;
    memcpy(&number, &bits, sizeof number);
    return number >> unused;
}

/* Pushes the value at *at, which gguf_open has checked, and moves on over it. */
static void push_value(lua_State *L, gguf_type type, const unsigned char **at)
{
    const size_t width = gguf_width(type);
    switch (type) {
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64: lua_pushinteger(L, next_signed(at, width)); return;
    case GGUF_F32: {
        float number;
        const uint32_t bits = (uint32_t)next(at, width);
        memcpy(&number, &bits, sizeof number);
        lua_pushnumber(L, (lua_Number)number);
        return;
    }
    case GGUF_F64: {
        double number;
        const uint64_t bits = next(at, width);
        memcpy(&number, &bits, sizeof number);
        lua_pushnumber(L, number);
        return;
    }
    case GGUF_BOOL: lua_pushboolean(L, next(at, width) != 0); return;
    case GGUF_STRING: {
        const size_t length = next(at, sizeof(uint64_t));
        lua_pushlstring(L, (const char *)*at, length);
        *at += length;
        return;
    }
    case GGUF_ARRAY: {
        const gguf_type inner = (gguf_type)next(at, sizeof(uint32_t));
        const uint64_t count = next(at, sizeof(uint64_t));
        luaL_checkstack(L, 4, NULL);
        lua_newtable(L);
        for (uint64_t i = 1; i <= count; ++i) {
            push_value(L, inner, at);
            lua_rawseti(L, -2, (lua_Integer)i);
        }
        return;
    }
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
    case GGUF_TYPES: break;
    }
    const uint64_t number = next(at, width);
    if (number <= INT64_MAX)
        lua_pushinteger(L, (lua_Integer)number);
    else
        lua_pushnumber(L, (lua_Number)number);
}

int weights_metadata(lua_State *L)
{
    char error[ERROR_SIZE];
    const char *path = luaL_checkstring(L, 1);
    files_source source;
    gguf file = {.header = NULL};
    if (!files_open(path, &source, error, sizeof error))
        return host_fail(L, error);
    const bool good = gguf_claims(&source) ? gguf_open(&source, &file, error, sizeof error)
                                           : files_error(error, sizeof error, "%s: is not a GGUF file", path);
    if (good) {
        lua_newtable(L);
        for (size_t i = 0; i < file.entry_count; ++i) {
            const unsigned char *at = file.entries[i].value;
            push_value(L, file.entries[i].type, &at);
            lua_setfield(L, -2, file.entries[i].key);
        }
    }
    gguf_close(&file);
    files_close(&source);
    return good ? 1 : host_fail(L, error);
}
