/* Calls of an emitted tokenizer, alone or in a whole model, for Lua. */
#include "harness/tokenizer/text.h"

#include "gen/host/fields.h"
#include "harness/base/memory.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdlib.h>

void text_read(lua_State *L, int index, const char *where, text_functions *text)
{
    text->scratch_factor = field_size(L, index, where, "scratch_factor");
    text->scratch_more = field_size(L, index, where, "scratch_more");
    text->around = field_size(L, index, where, "around");
}

/* The ids of the text at index 2, from malloc, and in *count how many; NULL, with nil and a message pushed. */
static int32_t *ids_of(lua_State *L, const text_functions *text, const void *weights, ptrdiff_t *count)
{
    size_t bytes;
    const char *from = luaL_checklstring(L, 2, &bytes);
    const size_t all = bytes * text->scratch_factor + text->scratch_more;
    size_t most = 3 * bytes + text->around + 16, scratch_bytes = all < ((size_t)64 << 20) ? all : all / 8;
    int32_t *ids = NULL;
    bool enough = true;
    for (bool again = true; again;) {
        ids = malloc(most * sizeof *ids);
        void *scratch = aligned_alloc(MEMORY_ALIGNMENT, round_up(scratch_bytes, MEMORY_ALIGNMENT));
        enough = ids && scratch;
        *count = enough ? text->tokenize(weights, from, bytes, ids, most, scratch, scratch_bytes) : 0;
        again = false;
        if (*count == -text->room_refused && most <= 16 * bytes + text->around + 16) {
            most *= 8;
            again = true;
        } else if (*count == -text->scratch_refused && scratch_bytes < all) {
            scratch_bytes = all;
            again = true;
        }
        free(scratch);
        if (again)
            free(ids);
    }
    if (enough && *count >= 0)
        return ids;
    free(ids);
    lua_pushnil(L);
    if (*count < 0)
        lua_pushfstring(L, "a text of %d bytes: refused with code %d", (int)bytes, (int)-*count);
    else
        lua_pushfstring(L, "a text of %d bytes: not enough memory", (int)bytes);
    return NULL;
}

int text_push_ids(lua_State *L, const text_functions *text, const void *weights)
{
    ptrdiff_t count = 0;
    int32_t *ids = ids_of(L, text, weights, &count);
    if (!ids)
        return 2;
    lua_createtable(L, (int)count, 0);
    for (ptrdiff_t i = 0; i < count; ++i) {
        lua_pushinteger(L, ids[i]);
        lua_rawseti(L, -2, i + 1);
    }
    free(ids);
    return 1;
}

int text_push_packed(lua_State *L, const text_functions *text, const void *weights)
{
    ptrdiff_t count = 0;
    int32_t *ids = ids_of(L, text, weights, &count);
    if (!ids)
        return 2;
    lua_pushlstring(L, (const char *)ids, (size_t)count * sizeof *ids);
    free(ids);
    return 1;
}

int text_push_text_of(lua_State *L, const text_functions *text, const void *weights)
{
    size_t bytes = 0;
    const char *piece = text->text_of(weights, (int32_t)luaL_checkinteger(L, 2), &bytes);
    if (piece)
        lua_pushlstring(L, piece, bytes);
    else
        lua_pushnil(L);
    return 1;
}
