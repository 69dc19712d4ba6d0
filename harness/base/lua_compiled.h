/* The Lua module `compiled`: what other modules need of its objects. */
#ifndef LOOKUPC_HARNESS_BASE_LUA_COMPILED_H
#define LOOKUPC_HARNESS_BASE_LUA_COMPILED_H

#include "harness/base/library.h"

#include <lua.h>
#include <stdint.h>

enum { COMPILED_WORDS = 10 }; /* arguments at most */

/* Any function. One that does not take so many words gets some that it does not look at: all calling conventions that lookupc knows pass
   pointers and integers as words, and leave it to the caller to take them back. */
typedef uintptr_t compiled_function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                                    uintptr_t);

static inline uintptr_t compiled_call(compiled_function *called, const uintptr_t word[COMPILED_WORDS])
{
    return called(word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7], word[8], word[9]);
}

/* The library of the model at `index` of the stack. */
const loaded_library *compiled_library_at(lua_State *L, int index);

/* The memory there, and how many bytes it has. */
void *compiled_memory_at(lua_State *L, int index, size_t *bytes);

/* What a function gets for the argument there. */
uintptr_t compiled_word_at(lua_State *L, int index);

/* The function whose address `model:find` or `compiled_push_function` has pushed there. */
compiled_function *compiled_function_at(lua_State *L, int index);
void compiled_push_function(lua_State *L, compiled_function *function);

#endif
