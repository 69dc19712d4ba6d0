/* Parts of the Lua module `process` that are files of their own. */
#ifndef LOOKUPC_HARNESS_BASE_PROCESS_H
#define LOOKUPC_HARNESS_BASE_PROCESS_H

#include <limits.h>
#include <lua.h>
#include <stdbool.h>

/* Pushes nil and "subject: reason", an errno. Returns 2. */
int process_fail(lua_State *L, const char *subject, int reason);

/* Removes a folder and all it holds. Safe in a signal handler. */
void temporary_remove(const char *path);

/* Where what is kept from run to run lies, in the user's folder of caches; false: nothing says where that is. */
bool temporary_kept(char folder[PATH_MAX]);

/* Where temporary folders are made: TMPDIR, or /tmp. If libraries cannot be loaded from there, and from the folder of temporary_kept they
   can, that one. */
const char *temporary_base(char kept[PATH_MAX]);

/* Makes a folder for all temporary ones in `base`, and first removes those that killed processes of this user left there. Returns its path,
   from malloc, or NULL: errno says why. */
char *temporary_make(const char *base);

/* Add the functions of isolated.c and process_facts.c to the table on top of the stack. */
void process_add_isolated(lua_State *L);
void process_add_facts(lua_State *L);

#endif
