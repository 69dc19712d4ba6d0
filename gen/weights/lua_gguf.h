/* The metadata of a GGUF file as a Lua table. */
#ifndef LOOKUPC_WEIGHTS_LUA_GGUF_H
#define LOOKUPC_WEIGHTS_LUA_GGUF_H

#include <lua.h>

/* weights.metadata(path) -> { key = value }, arrays as lists | nil, message */
int weights_metadata(lua_State *L);

#endif
