/* What the lookup FFNs of a library are given and look up, seen from outside while its public functions run.

   Emitted functions call each other through names that a shared library lets others take. A small library, the stand-in, has functions
   with the names of FFNs and gathers and is loaded first: its functions hand their arguments on to those of this file, which note them and
   call the real ones. So the library that is watched has the same bytes as one that is not.

   The Lua module `interposed`, for a process that runs one job:

   interposed.watch(seen): before the library is loaded; nothing is watched without an argument. seen = { stand_in (path), d, slots (of the
   widest), room (tokens, times layers), functions = { { name, gather (whether it is one, or an FFN), tile (of its codes), d, slots, step
   (floats from token to token of x), form (of the projection, see reference_form_at) } } }

   interposed.watch_behind(model of the module `compiled`): behind it

   interposed.notes() -> what has been noted, a string; nil: nothing was watched, or there were more tokens than there is room for */
#ifndef LOOKUPC_HARNESS_VERIFY_INTERPOSED_H
#define LOOKUPC_HARNESS_VERIFY_INTERPOSED_H

#include "harness/reference/block_lookup.h"

#include <lua.h>
#include <stddef.h>

/* The notes in such a string at `index`, sorted by layer; `job` has the field `seen` as above. What is returned and what it points to is
   kept alive by the stack. *count is 0 where there is no string. */
const reference_looked *interposed_notes(lua_State *L, int job, int index, size_t *count);

#endif
