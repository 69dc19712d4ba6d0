/* The Lua module `compiled`: what other modules need of its objects. */
#ifndef LOOKUPC_HARNESS_BASE_LUA_COMPILED_H
#define LOOKUPC_HARNESS_BASE_LUA_COMPILED_H

#include "harness/base/library.h"

#include <lua.h>

/* The library of the model at `index` of the stack. */
const loaded_library *compiled_library_at(lua_State *L, int index);

#endif
