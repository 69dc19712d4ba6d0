/* Finds the weights that the reference of transformers reads: maps and norms of a checkpoint, as tables of Lua describe them. */
#ifndef LOOKUPC_HARNESS_VERIFY_REFERENCE_WEIGHTS_H
#define LOOKUPC_HARNESS_VERIFY_REFERENCE_WEIGHTS_H

#include "harness/reference/transformer.h"

#include "gen/weights/shards.h"

#include <lua.h>

/* The map { weight, bias } in the field `name` of the table on top of the stack, views as gen/schema/checkpoint_names.lua makes them; an
   absent field is no map, an absent bias, or one that the checkpoint lacks, none. False with one line. `where` stands before the names of
   fields that are wrong. */
bool reference_map_at(lua_State *L, const char *where, const shards *checkpoint, const char *name, reference_map *map, char *error,
                      size_t error_size);

/* The norm { gain, offset } in the field, likewise; to be freed. */
bool reference_norm_at(lua_State *L, const char *where, const shards *checkpoint, const char *name, reference_block_norm *norm, char *error,
                       size_t error_size);

#endif
