/* Prepared calls: compiled functions with all their arguments in place, to be called again and again by what measures them. */
#ifndef LOOKUPC_HARNESS_BASE_PREPARED_H
#define LOOKUPC_HARNESS_BASE_PREPARED_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct prepared_call prepared_call;

/* The call at `index` of the stack, as `compiled.prepare` makes it (lua_compiled.c); raises a Lua error for anything else. */
prepared_call *prepared_at(lua_State *L, int index);

/* How many callers it has, numbered from 0, which may call at a time. */
size_t prepared_callers(const prepared_call *call);

/* Makes the call, once, for that caller. Returns whether it succeeded. */
bool prepared_run(prepared_call *call, size_t caller);

/* Adds `prepare` to the module `compiled`, on top of the stack. */
void prepared_open(lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
