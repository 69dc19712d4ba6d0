/* The reference's model and types in the fields of Lua tables. */
#ifndef LOOKUPC_HARNESS_REFERENCE_FIELDS_H
#define LOOKUPC_HARNESS_REFERENCE_FIELDS_H

#include "harness/reference/lookup.h"
#include "harness/reference/projection.h"
#include "harness/reference/type.h"

#include <lua.h>

/* Both raise a Lua error, which starts with `where`, for a field that is absent or wrong: such a job is a mistake in the program. */

/* The table { d, d_out, h, tau, neighbours, projection = "bh4"|"dense", block, decay, score = a name of reference_scores, scale,
   norm_eps or nil }. */
reference_model reference_model_at(lua_State *L, int index, const char *where);

/* The type that the field names, which must be one for that use; f32 for an absent one. */
reference_type reference_type_at(lua_State *L, int index, const char *where, const char *field, reference_use use);

/* The form that the field `form` names: "multiplied_out" or "bf16_inputs"; absent: as it is. */
reference_form reference_form_at(lua_State *L, int index);

#endif
