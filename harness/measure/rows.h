/* Libraries and calls of compiled code, as a job of the measuring process describes them, beside its memory (buffers.h).

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

#include "harness/measure/buffers.h"
#include "harness/measure/timing.h"

/* The libraries of a job, bound, and its memory. Rows of its setup have been called. */
typedef struct rows_parts rows_parts;

const rows_parts *rows_prepare(const job_object *job, const buffers *memory);

timed_call rows_call(const rows_parts *parts, const job_object *row);

#endif
