/* Runs tests written in Lua with the C modules of lookupc: lua_runner ROOT LOOKUPC TEST.lua... (see tests/support/runner.lua). */
#include "commands/harness_modules.h"
#include "gen/host/program.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: lua_runner ROOT LOOKUPC TEST.lua...\n", stderr);
        return 2;
    }
    return program_run(argv[1], "tests.support.runner", argv + 2, harness_modules);
}
