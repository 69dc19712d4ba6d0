/* Lua module `kernel`: runs a compiled variant, and reads what a job says of one. */
#ifndef LOOKUPC_HARNESS_KERNEL_H
#define LOOKUPC_HARNESS_KERNEL_H

#include "harness/base/variant.h"

#include <lua.h>

/* Reads the variant at `index` of the stack; the table must stay referenced as long as the variant is used. Raises a Lua error for a
   field that is absent or of the wrong type. */
variant_description kernel_variant_at(lua_State *L, int index);

/* kernel.run(variant, blob path, input.npy, output.npy) -> { tokens = n } | nil, message: y for every row of the input. */
int luaopen_kernel(lua_State *L);

#endif
