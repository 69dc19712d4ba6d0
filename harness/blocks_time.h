/* Timing of compiled blocks of transformers. */
#ifndef LOOKUPC_HARNESS_BLOCKS_TIME_H
#define LOOKUPC_HARNESS_BLOCKS_TIME_H

#include <lua.h>

/* blocks.time(job) -> lists of CPU seconds: of reading the first blob, of a call of each blocks, and, if OpenBLAS is here, of the dense
   products | nil, message. job = { d, position, tokens, repetitions, blocks = { { library, bind, prefill, blob_bytes, cache_bytes,
   scratch_bytes, weights_struct_bytes, sections, magic, digest, format, header_bytes } }, dense = { { inputs, outputs } } or nil }. Weights
   are random, and memory is kept until the program ends. */
int blocks_time(lua_State *L);

#endif
