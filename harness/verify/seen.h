/* What the lookup FFNs of a library are given and look up, seen from outside while its public functions run.

   Emitted functions call each other through names that a shared library lets others take. A small library, the stand-in, has functions
   with the names of FFNs and gathers and is loaded first: its functions hand their arguments on to those of this file, which note them and
   call the real ones. So the library that is seen at work has the same bytes as one that is not. */
#ifndef LOOKUPC_HARNESS_VERIFY_SEEN_H
#define LOOKUPC_HARNESS_VERIFY_SEEN_H

#include "harness/reference/block_lookup.h"

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* What a job says of it, and the memory of the notes, which a child shares with its parent. */
typedef struct seen seen;

/* The field `seen` of the job at `index`: { stand_in (path), d, slots (of the widest), room (tokens, times layers), functions = { { name,
   gather (whether it is one, or an FFN), tile (of its codes), d, slots, step (floats from token to token of x) } } }. NULL: there is none,
   or memory is short; then *short_of_memory. */
seen *seen_at(lua_State *L, int index, bool *short_of_memory);
void seen_free(seen *s);

/* In the child: before the library is loaded, and behind it. All take NULL. Fail with one line. */
bool seen_before(seen *s, char *error, size_t error_size);
bool seen_behind(seen *s, void *library, char *error, size_t error_size);

/* In the parent: pushes what has been noted, a string, or nil for NULL or for more tokens than there is room for. */
void seen_push(lua_State *L, const seen *s);

/* The notes in such a string at `index`, sorted by layer; `job` has the same field `seen`. What is returned and what it points to is kept
   alive by the stack. *count is 0 where there is no string. */
const reference_looked *seen_notes(lua_State *L, int job, int index, size_t *count);

#endif
