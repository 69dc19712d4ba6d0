/* The program lookupc-measure: lookupc's own with the modules that time, in a process of its own, since libraries read their environment
   when they are loaded. It ends with the process that starts it. */
#include "commands/harness_modules.h"
#include "gen/host/program.h"
#include "harness/base/amx.h"
#include "harness/base/parent.h"
#include "harness/measure/modules.h"

#include <stdio.h>
#include <stdlib.h>

static const luaL_Reg own[] = {{"baselines", luaopen_baselines}, {"inputs", luaopen_inputs}, {"measure", luaopen_measure}, {NULL, NULL}};

int main(int argc, char **argv)
{
    luaL_Reg modules[64];
    size_t count = 0;
    if (argc != 5) {
        fputs("usage: lookupc-measure PARENT TREE JOB.json OUT.json\n", stderr);
        return 2;
    }
    end_with_parent((pid_t)atoi(argv[1])); /* nobody else wants the result, and others wait for this machine */
    amx_request();                         /* before a library or compiled code looks what it may use */
    for (const luaL_Reg *row = own; row->name; ++row)
        modules[count++] = *row;
    for (const luaL_Reg *row = harness_modules; row->name; ++row)
        modules[count++] = *row;
    modules[count] = (luaL_Reg){NULL, NULL};
    return program_run(*argv[2] ? argv[2] : NULL, "harness.measure.process", argv + 3, modules);
}
