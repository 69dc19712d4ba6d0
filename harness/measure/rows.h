/* Memory, libraries and calls of compiled code, as a job of the measuring process describes them.

   memory     { name; bytes; fill: absent (zeros), "normal", "skewed" (tokens of `width` floats such as text has), "units" (int16),
              "ids" (int32 below `below`), "sizes" (size_t: the list `sizes`); large: whether it asks for large pages; copies: each
              caller has one of them }
   libraries  { name, library, blob (paths), bind, weights_struct_bytes; weights_of: the name of one whose weights it has, too: to read a
              large blob again would take longer than the timing }
   setup      rows that are made once, by each caller
   calls      rows that are timed: { name; steps; places; threads (1 if absent); callers at a time (1); cold; turn, turns; alike }: see
              timed_call

   A step of a row is a call of a function, of rows.c or of the library of that name: { library, function, status (whether it returns one, 0
   for success), arguments }; for `tokens` tokens, `chunk` at a time, if it has these fields. An argument is an integer, the name of a
   memory, "weights", "blob", "tokens" (those of this time), or { memory; at, place, token: bytes behind its beginning, times 1, the number
   of the place, the first token; value: the int32 there }. A row walks through its places, so that a call does not find what it has just
   seen in the caches: the next call is at the next one, that of the next caller, and in the end at the first again. */
#ifndef LOOKUPC_MEASURE_ROWS_H
#define LOOKUPC_MEASURE_ROWS_H

#include "harness/measure/timing.h"

/* The memory and the libraries of a job. */
typedef struct rows_parts rows_parts;

/* Everything is made, touched and, where it is written once, written before the first call is timed. It lives until the process ends. */
const rows_parts *rows_prepare(const timing *of);

timed_call rows_call(const rows_parts *parts, const job_object *row);

/* A memory's copy for the caller, and how many bytes it has. */
void *rows_memory(const rows_parts *parts, const char *name, size_t caller);
size_t rows_bytes(const rows_parts *parts, const char *name);

/* So many normal numbers. Those of large memory repeat: only their making would take long. */
void rows_random(float *numbers, size_t count, uint64_t seed, double deviation);

#endif
