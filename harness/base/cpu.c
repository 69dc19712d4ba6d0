/* Lua module `cpu`: what this processor and its operating system say of themselves. */
#include "gen/host/fields.h"
#include "harness/base/cpu_facts.h"
#include "harness/base/modules.h"

#include <lauxlib.h>
#include <lua.h>

int luaopen_cpu(lua_State *L);

/* cpu.describe() -> { architecture, model, vendor, family, number, stepping, virtual, leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx,
   leaf7_1_eax, xcr0, amx_missing (why this process cannot use AMX, whose bits of leaf7_edx are 0 then; absent: it can), id_aa64pfr0_el1,
   id_aa64isar0_el1, id_aa64isar1_el1, id_aa64zfr0_el1, vector_bytes, l1d, l1i, l2, l3, l3_share in bytes (absent when unknown) } */
static int describe(lua_State *L)
{
    const cpu_facts facts = cpu_facts_read();
    lua_newtable(L);
    field_set_text(L, "model", facts.model);
    field_set_text(L, "architecture", facts.architecture);
    field_set_text(L, "vendor", facts.vendor);
    field_set_flag(L, "virtual", facts.virtual);
    if (facts.amx_missing)
        field_set_text(L, "amx_missing", facts.amx_missing);
    cpu_number numbers[CPU_NUMBERS];
    cpu_facts_numbers(&facts, numbers);
    for (size_t i = 0; i < CPU_NUMBERS; ++i) {
        if (numbers[i].known) {
            lua_pushinteger(L, (lua_Integer)numbers[i].number);
            lua_setfield(L, -2, numbers[i].name);
        }
    }
    return 1;
}

int luaopen_cpu(lua_State *L)
{
    const luaL_Reg functions[] = {{"describe", describe}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
