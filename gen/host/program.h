/* Runs a Lua module as a program: one state, one error handler, one line for every failure. */
#ifndef LOOKUPC_GEN_PROGRAM_H
#define LOOKUPC_GEN_PROGRAM_H

#include <lauxlib.h>

/* Calls the function that the Lua module `entry` returns with the array of arguments (ended by NULL) and returns the exit status.
   The function returns a status from 0 to 255, or nil and a message. A message, also that of a Lua error, becomes one line
   "lookupc: message" on standard error and status 1, or that of the error's kind, the field __status of its metatable; LOOKUPC_TRACEBACK=1
   in the environment adds the Lua stack to Lua errors. Lua modules come from the folder tree, or are the embedded ones if tree is NULL.
   They see base, table, string, math, utf8, require and C modules: the generator's, which have no clock, no random numbers and no files but
   through `host`, and those in `modules`, a list that ends with NULL. */
int program_run(const char *tree, const char *entry, char **arguments, const luaL_Reg *modules);

/* Gives the state L what such a module sees, with the same tree and modules. Raises Lua errors. */
void program_open(lua_State *L, const char *tree, const luaL_Reg *modules);

#endif
