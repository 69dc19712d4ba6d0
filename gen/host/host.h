/* The Lua module `host`, and the list of the generator's C modules. */
#ifndef LOOKUPC_GEN_HOST_H
#define LOOKUPC_GEN_HOST_H

#include <lauxlib.h>
#include <stdbool.h>
#include <stddef.h>

/* Name of the registry field that holds the folder of `--tree`, absent when the embedded files are used. */
#define HOST_TREE "lookupc.tree"

/* Pushes the text of an embedded file, or of the same file below the folder of `--tree`; on failure nil and one line. Returns success. */
bool host_push_resource(lua_State *L, const char *name);

/* The same of a Lua module, as bytecode where that is embedded. Returns the mode that lua_load takes: "b" or "t"; NULL: it failed. */
const char *host_push_module(lua_State *L, const char *name);

/* Pushes nil and the message: how a function that Lua calls says that it failed. Returns 2, the number of its results. */
int host_fail(lua_State *L, const char *message);

/* Makes the metatable `name` of objects with these methods. `end` closes one, maybe twice: at the end of a block that it is <close> in, and
   when it is collected. */
void host_class(lua_State *L, const char *name, lua_CFunction end, const luaL_Reg *methods);

/* Shows how far a long command is, in place of the last status, if standard error is a terminal; "" removes it. Returns whether it is one.
 */
bool host_show_status(const char *text);

/* Adds the functions of output to the module `host`, on top of the stack. */
void host_add_output(lua_State *L);

int luaopen_host(lua_State *L);
int luaopen_sandbox(lua_State *L);
int luaopen_json(lua_State *L);
int luaopen_weights(lua_State *L);
int luaopen_fuse(lua_State *L);
int luaopen_unicode(lua_State *L);

#endif
