/* The Lua module `tokenizer`: an emitted tokenizer in a shared library, bound to its blob. */
#include "gen/host/fields.h"
#include "gen/host/host.h"
#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"
#include "harness/base/modules.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define METATABLE "tokenizer"

enum { ERROR_SIZE = 4096 + 256 };

typedef struct {
    void *library, *weights;
    files_mapping blob;
    int (*bind)(const void *, size_t, void *);
    ptrdiff_t (*tokenize)(const void *, const char *, size_t, int32_t *, size_t, void *, size_t);
    const char *(*text_of)(const void *, int32_t, size_t *);
    size_t scratch_factor, scratch_more, around;
} tokenizer;

static int tokenizer_close(lua_State *L)
{
    tokenizer *t = lua_touserdata(L, 1);
    files_unmap(&t->blob);
    free(t->weights);
    if (t->library)
        dlclose(t->library);
    *t = (tokenizer){0};
    return 0;
}

static bool find(tokenizer *t, const char *name, void *function)
{
    void *address = dlsym(t->library, name);
    if (address)
        memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* tokenizer.open { library, blob, bind, tokenize, text_of, weights_struct_bytes, scratch_factor, scratch_more, around }
   -> tokenizer | nil, message. The texts are paths and names of functions; `around`: ids beside those of the text. */
static int tokenizer_open(lua_State *L)
{
    char error[ERROR_SIZE];
    luaL_checktype(L, 1, LUA_TTABLE);
    const char *library = field_text(L, 1, "tokenizer: ", "library", NULL), *blob = field_text(L, 1, "tokenizer: ", "blob", NULL);
    tokenizer *t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = (tokenizer){0};
    luaL_setmetatable(L, METATABLE);
    t->scratch_factor = field_size(L, 1, "tokenizer: ", "scratch_factor");
    t->scratch_more = field_size(L, 1, "tokenizer: ", "scratch_more");
    t->around = field_size(L, 1, "tokenizer: ", "around");
    if (!blob_map(blob, &t->blob, error, sizeof error))
        return host_fail(L, error);
    t->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!t->library)
        return host_fail(L, dlerror());
    const bool found = find(t, field_text(L, 1, "tokenizer: ", "bind", NULL), &t->bind) &&
                       find(t, field_text(L, 1, "tokenizer: ", "tokenize", NULL), &t->tokenize) &&
                       find(t, field_text(L, 1, "tokenizer: ", "text_of", NULL), &t->text_of);
    if (!found)
        return luaL_error(L, "%s: lacks a function", library);
    t->weights = aligned_memory(field_size(L, 1, "tokenizer: ", "weights_struct_bytes") + 8);
    if (!t->weights)
        return luaL_error(L, "not enough memory");
    const int code = t->bind(t->blob.data, t->blob.bytes, t->weights);
    if (code != 0) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s: refused with code %d", blob, code);
        return 2;
    }
    return 1;
}

/* t:ids(text) -> { id } | nil, message */
static int tokenizer_ids(lua_State *L)
{
    tokenizer *t = luaL_checkudata(L, 1, METATABLE);
    size_t bytes;
    const char *text = luaL_checklstring(L, 2, &bytes);
    const size_t all = bytes * t->scratch_factor + t->scratch_more;
    size_t most = 3 * bytes + t->around + 16, scratch_bytes = all < ((size_t)64 << 20) ? all : all / 8;
    ptrdiff_t count = 0;
    int32_t *ids = NULL;
    void *scratch = NULL;
    for (;;) {
        ids = malloc(most * sizeof *ids);
        scratch = aligned_alloc(MEMORY_ALIGNMENT, round_up(scratch_bytes, MEMORY_ALIGNMENT));
        count = ids && scratch ? t->tokenize(t->weights, text, bytes, ids, most, scratch, scratch_bytes) : 0;
        if (!ids || !scratch || count >= 0 || (count == -9 && most > 16 * bytes + t->around + 16) || (count == -10 && scratch_bytes == all))
            break;
        if (count == -9)
            most *= 8;
        else if (count == -10)
            scratch_bytes = all;
        else
            break;
        free(ids);
        free(scratch);
    }
    if (!ids || !scratch || count < 0) {
        free(ids);
        free(scratch);
        lua_pushnil(L);
        if (count < 0)
            lua_pushfstring(L, "a text of %d bytes: refused with code %d", (int)bytes, (int)-count);
        else
            lua_pushfstring(L, "a text of %d bytes: not enough memory", (int)bytes);
        return 2;
    }
    lua_createtable(L, (int)count, 0);
    for (ptrdiff_t i = 0; i < count; ++i) {
        lua_pushinteger(L, ids[i]);
        lua_rawseti(L, -2, i + 1);
    }
    free(ids);
    free(scratch);
    return 1;
}

/* t:text_of(id) -> what it adds to a text | nil */
static int tokenizer_text_of(lua_State *L)
{
    tokenizer *t = luaL_checkudata(L, 1, METATABLE);
    size_t bytes = 0;
    const char *text = t->text_of(t->weights, (int32_t)luaL_checkinteger(L, 2), &bytes);
    if (text)
        lua_pushlstring(L, text, bytes);
    else
        lua_pushnil(L);
    return 1;
}

int luaopen_tokenizer(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", tokenizer_open}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"ids", tokenizer_ids}, {"text_of", tokenizer_text_of}, {NULL, NULL}};
    luaL_newmetatable(L, METATABLE);
    lua_pushcfunction(L, tokenizer_close);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    return 1;
}
