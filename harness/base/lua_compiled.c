/* The Lua module `compiled`: a library of a compiled model, bound to its blob, memory, and calls.

   compiled.open{ library, blob, bind, weights_struct_bytes, stays, blob_of } -> model | nil, message; stays: see library.h; blob_of: a
   model whose mapped blob it shares. Without `bind` it has no weights.

   model:call(name, ...) -> the word that the function returns, the same as an int. Arguments, at most ten: an integer; nil or false: a null
   pointer; a memory, another full userdata, or a string that is not written: its first byte; a model: its weights; { one of these, at }:
   `at` bytes behind its beginning. model:find(name) -> the function's address, model:blob() -> the blob's, an integer.

   compiled.prepare(callers, places[, first]) -> prepared, a call that does nothing yet. prepared:step(caller, function, status, ...) adds a
   step for a caller, numbered from 0: a call of the function with that address, which returns 0 for success if `status` is true. Arguments
   are as above, or { memory, at, place, value }, `place` times the number of the place further on; value: the int32 there. A caller walks
   through the places, so that a call does not find what it has just seen in the caches: the next call is at the next one, that of the next
   caller, and in the end at the first again. It begins at place `first`, 0 if absent. prepared:run() -> whether each caller, one after the
   other, succeeded; prepared:together(times): so many times, all at once, each in a thread of its own. compiled.memcmp: an address, for
   steps.

   compiled.memory(bytes[, place[, alignment]]) -> memory. Without a place, or "large", in large pages, all zero; else between guard pages,
   all bytes 0xFF: "end", "start" or "unaligned" as in guard.h. It is freed at the end of a block that it is <close> in.

   memory:write(string[, at]), memory:copy(address): as many bytes as it has, from there; memory:read([bytes[, at]]) -> string,
   memory:holds(string) -> whether it begins with that, memory:largest_halves(bytes, at) -> how many numbers of half precision there, two
   bytes each, are the largest or the smallest finite one, memory:read_only(): a write kills the process, memory:intact() -> whether nobody
   wrote around it, memory:address(): an integer, for structs, memory:free().

   compiled.bytes(address, count) -> string, compiled.pack(list) -> string of int32, compiled.unpack(string) -> list. */
#include "harness/base/lua_compiled.h"

#include "gen/host/fields.h"
#include "gen/host/host.h"
#include "harness/base/blob_memory.h"
#include "harness/base/guard.h"
#include "harness/base/memory.h"
#include "harness/base/modules.h"
#include "harness/base/prepared.h"

#include <lauxlib.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MODEL "compiled.model"
#define MEMORY "compiled.memory"

static const char where[] = "compiled: ";

enum { ERROR_SIZE = 4096 + 256 };

typedef struct {
    loaded_library library;
    files_mapping blob;
    bool shares_blob; /* with another model */
    void *weights;
} model;

typedef struct {
    unsigned char *data;
    size_t bytes;
    bool large;      /* in large pages */
    guarded guarded; /* zeros: it is not */
} memory;

const loaded_library *compiled_library_at(lua_State *L, int index)
{
    return &((const model *)luaL_checkudata(L, index, MODEL))->library;
}

static int model_close(lua_State *L)
{
    model *m = luaL_checkudata(L, 1, MODEL);
    if (!m->shares_blob)
        files_unmap(&m->blob);
    free(m->weights);
    library_close(&m->library);
    *m = (model){0};
    return 0;
}

static int open_(lua_State *L)
{
    char error[ERROR_SIZE];
    luaL_checktype(L, 1, LUA_TTABLE);
    const char *path = field_text(L, 1, where, "library", NULL);
    const char *bind = field_text(L, 1, where, "bind", ""), *blob = field_text(L, 1, where, "blob", bind[0] ? NULL : "");
    lua_getfield(L, 1, "blob_of");
    const model *other = lua_isnil(L, -1) ? NULL : luaL_checkudata(L, -1, MODEL);
    model *m = lua_newuserdatauv(L, sizeof *m, 1);
    *m = (model){.weights = aligned_memory(field_size(L, 1, where, "weights_struct_bytes")), .shares_blob = other != NULL};
    if (other)
        m->blob = other->blob;
    luaL_setmetatable(L, MODEL);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1); /* keeps the path and the other model */
    if (!m->weights)
        return host_fail(L, "not enough memory");
    return library_open(&m->library, path, field_flag(L, 1, "stays") ? LIBRARY_STAYS : LIBRARY_ALONE, error, sizeof error) &&
                   (!bind[0] || ((other || blob_map(blob, &m->blob, error, sizeof error)) &&
                                 library_bind(&m->library, bind, blob, &m->blob, m->weights, error, sizeof error)))
               ? 1
               : host_fail(L, error);
}

void *compiled_memory_at(lua_State *L, int index, size_t *bytes)
{
    const memory *of = luaL_checkudata(L, index, MEMORY);
    *bytes = of->bytes;
    return of->data;
}

uintptr_t compiled_word_at(lua_State *L, int index)
{
    if (lua_istable(L, index)) {
        lua_rawgeti(L, index, 1);
        lua_getfield(L, index, "at");
        const uintptr_t word = compiled_word_at(L, -2) + (uintptr_t)lua_tointeger(L, -1);
        lua_pop(L, 2);
        return word;
    }
    const memory *of = luaL_testudata(L, index, MEMORY);
    const model *m = luaL_testudata(L, index, MODEL);
    return of                                  ? (uintptr_t)of->data
           : m                                 ? (uintptr_t)m->weights
           : lua_type(L, index) == LUA_TSTRING ? (uintptr_t)lua_tostring(L, index)
           : lua_isuserdata(L, index)          ? (uintptr_t)lua_touserdata(L, index)
           : lua_toboolean(L, index)           ? (uintptr_t)luaL_checkinteger(L, index)
                                               : 0;
}

compiled_function *compiled_function_at(lua_State *L, int index)
{
    void *const address = lua_touserdata(L, index);
    compiled_function *function;
    memcpy(&function, &address, sizeof function); /* no cast from an object's address to a function's */
    return function;
}

void compiled_push_function(lua_State *L, compiled_function *function)
{
    void *address;
    memcpy(&address, &function, sizeof address);
    lua_pushlightuserdata(L, address);
}

static compiled_function *found_at(lua_State *L)
{
    char error[ERROR_SIZE];
    const model *m = luaL_checkudata(L, 1, MODEL);
    compiled_function *found;
    if (!library_find(&m->library, luaL_checkstring(L, 2), &found, error, sizeof error))
        luaL_error(L, "%s", error);
    return found;
}

static int model_find(lua_State *L)
{
    compiled_push_function(L, found_at(L));
    return 1;
}

static int model_blob(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)(uintptr_t)((const model *)luaL_checkudata(L, 1, MODEL))->blob.data);
    return 1;
}

static int model_call(lua_State *L)
{
    uintptr_t word[COMPILED_WORDS] = {0};
    luaL_argcheck(L, lua_gettop(L) <= COMPILED_WORDS + 2, COMPILED_WORDS + 3, "too many arguments");
    for (int i = 3; i <= lua_gettop(L); ++i)
        word[i - 3] = compiled_word_at(L, i);
    const uintptr_t returned = compiled_call(found_at(L), word);
    lua_pushinteger(L, (lua_Integer)returned);
    lua_pushinteger(L, (int32_t)returned);
    return 2;
}

static int memory_free(lua_State *L)
{
    memory *of = luaL_checkudata(L, 1, MEMORY);
    if (of->guarded.pages)
        guard_free(&of->guarded);
    else if (of->large && of->data)
        munmap(of->data, of->bytes + !of->bytes);
    else
        free(of->data);
    *of = (memory){0};
    return 0;
}

static int make_memory(lua_State *L)
{
    static const char *const places[] = {"end", "start", "unaligned", "large", NULL};
    enum { LARGE = 3 };
    const size_t bytes = (size_t)luaL_checkinteger(L, 1), alignment = (size_t)luaL_optinteger(L, 3, MEMORY_ALIGNMENT);
    lua_settop(L, 3);
    memory *of = lua_newuserdatauv(L, sizeof *of, 0);
    *of = (memory){.bytes = bytes};
    luaL_setmetatable(L, MEMORY);
    const int place = lua_isnoneornil(L, 2) ? -1 : luaL_checkoption(L, 2, NULL, places);
    of->large = place == LARGE;
    if (place < 0)
        of->data = aligned_memory(bytes);
    else if (of->large)
        of->data = memory_of_large_pages(bytes);
    else if (guard_create(&of->guarded, bytes, alignment, (guard_place)place))
        of->data = of->guarded.data;
    if (of->large && of->data)
        memset(of->data, 0, bytes); /* pages that were never written are all the same page of zeros */
    return of->data ? 1 : luaL_error(L, "not enough memory");
}

/* Checks that `bytes` from `at` on are inside. */
static unsigned char *inside(lua_State *L, const memory *of, size_t at, size_t bytes)
{
    luaL_argcheck(L, at <= of->bytes && bytes <= of->bytes - at, 1, "is too small");
    return of->data + at;
}

static int memory_write(lua_State *L)
{
    size_t bytes;
    const memory *of = luaL_checkudata(L, 1, MEMORY);
    const char *from = luaL_checklstring(L, 2, &bytes);
    memcpy(inside(L, of, (size_t)luaL_optinteger(L, 3, 0), bytes), from, bytes);
    return 0;
}

static int memory_copy(lua_State *L)
{
    const memory *of = luaL_checkudata(L, 1, MEMORY);
    memcpy(of->data, (const void *)luaL_checkinteger(L, 2), of->bytes); /* NOLINT(performance-no-int-to-ptr) */
    return 0;
}

static int memory_read(lua_State *L)
{
    const memory *of = luaL_checkudata(L, 1, MEMORY);
    const size_t bytes = (size_t)luaL_optinteger(L, 2, (lua_Integer)of->bytes);
    lua_pushlstring(L, (const char *)inside(L, of, (size_t)luaL_optinteger(L, 3, 0), bytes), bytes);
    return 1;
}

static int memory_holds(lua_State *L)
{
    size_t bytes;
    const memory *of = luaL_checkudata(L, 1, MEMORY);
    const char *wanted = luaL_checklstring(L, 2, &bytes);
    lua_pushboolean(L, memcmp(inside(L, of, 0, bytes), wanted, bytes) == 0);
    return 1;
}

static int memory_largest_halves(lua_State *L)
{
    enum { LARGEST = 0x7bff, SIGN = 0x8000 };
    const memory *of = luaL_checkudata(L, 1, MEMORY);
    const size_t bytes = (size_t)luaL_checkinteger(L, 2);
    const uint16_t *halves = (const uint16_t *)(const void *)inside(L, of, (size_t)luaL_checkinteger(L, 3), bytes);
    lua_Integer count = 0;
    for (size_t i = 0; i < bytes / sizeof *halves; ++i)
        count += (halves[i] & ~SIGN) == LARGEST;
    lua_pushinteger(L, count);
    return 1;
}

static int memory_read_only(lua_State *L)
{
    memory *of = luaL_checkudata(L, 1, MEMORY);
    guard_read_only(&of->guarded);
    return 0;
}

static int memory_intact(lua_State *L)
{
    const memory *of = luaL_checkudata(L, 1, MEMORY);
    lua_pushboolean(L, guard_intact(&of->guarded));
    return 1;
}

static int memory_address(lua_State *L)
{
    const memory *of = luaL_checkudata(L, 1, MEMORY);
    lua_pushinteger(L, (lua_Integer)(uintptr_t)of->data);
    return 1;
}

static int bytes_at(lua_State *L)
{
    lua_pushlstring(L, (const char *)luaL_checkinteger(L, 1), (size_t)luaL_checkinteger(L, 2)); /* NOLINT(performance-no-int-to-ptr) */
    return 1;
}

static int pack(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    const lua_Integer count = luaL_len(L, 1);
    luaL_Buffer buffer;
    int32_t *to = (int32_t *)(void *)luaL_buffinitsize(L, &buffer, (size_t)count * sizeof *to + 1);
    for (lua_Integer i = 0; i < count; ++i) {
        int is_integer = 0;
        lua_rawgeti(L, 1, i + 1);
        const lua_Integer value = lua_tointegerx(L, -1, &is_integer);
        luaL_argcheck(L, is_integer && value >= INT32_MIN && value <= INT32_MAX, 1, "ids must be integers of 32 bits");
        to[i] = (int32_t)value;
        lua_pop(L, 1);
    }
    luaL_pushresultsize(&buffer, (size_t)count * sizeof *to);
    return 1;
}

static int unpack(lua_State *L)
{
    size_t bytes;
    const int32_t *from = (const int32_t *)(const void *)luaL_checklstring(L, 1, &bytes);
    const lua_Integer count = (lua_Integer)(bytes / sizeof *from);
    lua_createtable(L, (int)count, 0);
    for (lua_Integer i = 0; i < count; ++i) {
        lua_pushinteger(L, from[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

int luaopen_compiled(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", open_}, {"memory", make_memory}, {"bytes", bytes_at},
                                         {"pack", pack},  {"unpack", unpack},      {NULL, NULL}};
    static const luaL_Reg of_models[] = {{"call", model_call}, {"find", model_find}, {"blob", model_blob}, {NULL, NULL}};
    static const luaL_Reg of_memory[] = {{"write", memory_write},
                                         {"copy", memory_copy},
                                         {"read", memory_read},
                                         {"holds", memory_holds},
                                         {"largest_halves", memory_largest_halves},
                                         {"read_only", memory_read_only},
                                         {"intact", memory_intact},
                                         {"address", memory_address},
                                         {"free", memory_free},
                                         {NULL, NULL}};
    host_class(L, MODEL, model_close, of_models);
    host_class(L, MEMORY, memory_free, of_memory);
    luaL_newlib(L, functions);
    prepared_open(L);
    compiled_push_function(L, (compiled_function *)(void (*)(void))memcmp);
    lua_setfield(L, -2, "memcmp");
    return 1;
}
