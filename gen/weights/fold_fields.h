/* Walks over tensors out of the Lua tables that plans are. */
#ifndef LOOKUPC_WEIGHTS_FOLD_FIELDS_H
#define LOOKUPC_WEIGHTS_FOLD_FIELDS_H

#include "gen/weights/fold.h"

#include <lua.h>
#include <stdbool.h>

/* Reads the array of at most FOLD_MAX_DIMS dimensions { count, from, <to> } in the field `dims` of the table at `table`; returns how many.
   `where` stands before a field's name in the message of an error. */
int fold_field_dims(lua_State *L, int table, const char *where, const char *to, fold_dim *dims);

/* The farthest element that a walk touches of the one array, or if not `from` of the other. */
size_t fold_farthest(const fold_dim *dims, int rank, bool from);

#endif
