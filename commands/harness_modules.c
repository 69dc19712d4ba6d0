/* The C modules of the harness, as the programs that run Lua take them. */
#include "commands/harness_modules.h"

#include "harness/base/modules.h"

const luaL_Reg harness_modules[] = {
    {"block_reference", luaopen_block_reference},
    {"compiled", luaopen_compiled},
    {"convert", luaopen_convert},
    {"cpu", luaopen_cpu},
    {"distil", luaopen_distil},
    {"exact_products", luaopen_exact_products},
    {"input_rounding", luaopen_input_rounding},
    {"integer_reference", luaopen_integer_reference},
    {"interposed", luaopen_interposed},
    {"lines", luaopen_lines},
    {"lookup_reference", luaopen_lookup_reference},
    {"npy", luaopen_npy},
    {"process", luaopen_process},
    {"rows", luaopen_rows},
    {"store", luaopen_store},
    {"train", luaopen_train},
    {"whole_reference", luaopen_whole_reference},
    {NULL, NULL},
};
