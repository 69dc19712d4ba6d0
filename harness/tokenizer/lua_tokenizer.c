/* The Lua module `tokenizer`: an emitted tokenizer in a shared library, bound to its blob. */
#include "gen/host/fields.h"
#include "gen/host/host.h"
#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"
#include "harness/base/modules.h"
#include "harness/base/symbol.h"
#include "harness/tokenizer/text.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define METATABLE "tokenizer"

enum { ERROR_SIZE = 4096 + 256, ROOM_REFUSED = 9, SCRATCH_REFUSED = 10 };

typedef struct {
    void *library, *weights;
    files_mapping blob;
    int (*bind)(const void *, size_t, void *);
    text_functions text;
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
    text_read(L, 1, "tokenizer: ", &t->text);
    t->text.room_refused = ROOM_REFUSED;
    t->text.scratch_refused = SCRATCH_REFUSED;
    if (!blob_map(blob, &t->blob, error, sizeof error))
        return host_fail(L, error);
    t->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!t->library)
        return host_fail(L, dlerror());
    const bool found = symbol_find(t->library, field_text(L, 1, "tokenizer: ", "bind", NULL), &t->bind) &&
                       symbol_find(t->library, field_text(L, 1, "tokenizer: ", "tokenize", NULL), &t->text.tokenize) &&
                       symbol_find(t->library, field_text(L, 1, "tokenizer: ", "text_of", NULL), &t->text.text_of);
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
    const tokenizer *t = luaL_checkudata(L, 1, METATABLE);
    return text_push_ids(L, &t->text, t->weights);
}

/* t:packed(text) -> ids as a string of int32 | nil, message */
static int tokenizer_packed(lua_State *L)
{
    const tokenizer *t = luaL_checkudata(L, 1, METATABLE);
    return text_push_packed(L, &t->text, t->weights);
}

/* t:text_of(id) -> what it adds to a text | nil */
static int tokenizer_text_of(lua_State *L)
{
    const tokenizer *t = luaL_checkudata(L, 1, METATABLE);
    return text_push_text_of(L, &t->text, t->weights);
}

int luaopen_tokenizer(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", tokenizer_open}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"ids", tokenizer_ids}, {"packed", tokenizer_packed}, {"text_of", tokenizer_text_of}, {NULL, NULL}};
    luaL_newmetatable(L, METATABLE);
    lua_pushcfunction(L, tokenizer_close);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    return 1;
}
