/* The model that a job of Lua describes. */
#ifndef LOOKUPC_HARNESS_VERIFY_MODEL_H
#define LOOKUPC_HARNESS_VERIFY_MODEL_H

#include "reference.h"

#include <lua.h>

/* The table at `index`: { d, d_out, h, tau, neighbours, projection, block, decay, score, scale, norm_eps }. Raises a Lua error for a wrong one. */
reference_model verify_model_at(lua_State *L, int index);

#endif
