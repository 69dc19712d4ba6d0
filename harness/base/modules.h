/* The list of the harness's C modules that Lua sees. */
#ifndef LOOKUPC_HARNESS_BASE_MODULES_H
#define LOOKUPC_HARNESS_BASE_MODULES_H

#include <lauxlib.h>

int luaopen_block_reference(lua_State *L);
int luaopen_compiled(lua_State *L);
int luaopen_convert(lua_State *L);
int luaopen_cpu(lua_State *L);
int luaopen_distil(lua_State *L);
int luaopen_exact_products(lua_State *L);
int luaopen_input_rounding(lua_State *L);
int luaopen_integer_reference(lua_State *L);
int luaopen_interposed(lua_State *L);
int luaopen_lines(lua_State *L);
int luaopen_lookup_reference(lua_State *L);
int luaopen_npy(lua_State *L);
int luaopen_process(lua_State *L);
int luaopen_rows(lua_State *L);
int luaopen_store(lua_State *L);
int luaopen_train(lua_State *L);
int luaopen_whole_reference(lua_State *L);

#endif
