/* The C modules of the harness, as the programs that run Lua take them. */
#ifndef LOOKUPC_COMMANDS_HARNESS_MODULES_H
#define LOOKUPC_COMMANDS_HARNESS_MODULES_H

#include <lauxlib.h>

extern const luaL_Reg harness_modules[]; /* ends with NULL */

#endif
