/* What Lua says of the rounding of a tensor. */
#ifndef LOOKUPC_TRAIN_ROUNDING_AT_H
#define LOOKUPC_TRAIN_ROUNDING_AT_H

#include "harness/train/rounding.h"

#include <lua.h>

/* The rounding of `count` elements in the field `name` of the table: { type, row, steps = { { step = "hadamard", size }, { step = "scale",
   at, factor, by } } }. False: there is none. Raises an error for one that does not fit them. */
bool rounding_at(lua_State *L, int table, const char *name, size_t count, rounding *to);

#endif
