/* The C modules of the harness, as the programs that run Lua take them. */
#include "commands/harness_modules.h"

#include "harness/base/modules.h"

const luaL_Reg harness_modules[] = {
    {"process", luaopen_process},
    {"cpu", luaopen_cpu},
    {"compiled", luaopen_compiled},
    {"convert", luaopen_convert},
    {"distil", luaopen_distil},
    {"verify", luaopen_verify},
    {"store", luaopen_store},
    {"train", luaopen_train},
    {"transformer", luaopen_transformer},
    {"integer_reference", luaopen_integer_reference},
    {"lines", luaopen_lines},
    {"npy", luaopen_npy},
    {"products", luaopen_products},
    {"rows", luaopen_rows},
    {"whole_reference", luaopen_whole_reference},
    {NULL, NULL},
};
