/* The C and C++ modules that the measuring program has beside lookupc's own. */
#ifndef LOOKUPC_MEASURE_MODULES_H
#define LOOKUPC_MEASURE_MODULES_H

#include <lua.h>

#ifdef __cplusplus
extern "C" {
#endif

int luaopen_baselines(lua_State *L);
int luaopen_inputs(lua_State *L);
int luaopen_measure(lua_State *L);

/* Adds the functions of limits.c to the table on top of the stack: see inputs.c. */
void limits_add_functions(lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
