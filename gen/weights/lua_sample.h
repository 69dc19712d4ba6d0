/* The function `sample` of the Lua module `weights`: random checkpoints. */
#ifndef LOOKUPC_WEIGHTS_LUA_SAMPLE_H
#define LOOKUPC_WEIGHTS_LUA_SAMPLE_H

#include <lua.h>

/* weights.sample(path, prefix, tensors, seed) -> true | nil, message; tensors = { { name, shape, mean, deviation, zero_every,
   diagonal, group, stride, transposed } }: with diagonal = d, ones are added along the diagonal of a matrix of d columns, or of its groups
   of rows; transposed: how many rows there are in all of a matrix that is stored [d][rows]. */
int weights_sample(lua_State *L);

#endif
