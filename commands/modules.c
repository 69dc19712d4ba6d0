/* The C modules of the harness, as the programs that run Lua take them. */
#include "commands/modules.h"

#include "harness/base/modules.h"

const luaL_Reg harness_modules[] = {
    {"process", luaopen_process},
    {"cpu", luaopen_cpu},
    {"kernel", luaopen_kernel},
    {"verify", luaopen_verify},
    {"store", luaopen_store},
    {"blocks", luaopen_blocks},
    {"integer", luaopen_integer},
    {NULL, NULL},
};
