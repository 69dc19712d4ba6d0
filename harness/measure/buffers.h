/* The memory of a job, made, touched and filled before anything is timed. It lives until the process ends.

   memory     { name; bytes; fill: absent (zeros), "normal", "skewed" (tokens of `width` floats such as text has), "units" (int16),
              "ids" (int32 below `below`), "sizes" (size_t: the list `sizes`); large: whether it asks for large pages; copies: each
              caller has one of them } */
#ifndef LOOKUPC_MEASURE_BUFFERS_H
#define LOOKUPC_MEASURE_BUFFERS_H

#include "harness/measure/job.h"

typedef struct buffers buffers;

const buffers *buffers_make(const job_object *job, uint64_t seed);

/* A memory's copy for the caller, and how many bytes it has. */
void *buffers_copy(const buffers *of, const char *name, size_t caller);
size_t buffers_bytes(const buffers *of, const char *name);

/* So many normal numbers. Those of large memory repeat: only their making would take long. */
void buffers_random(float *numbers, size_t count, uint64_t seed, double deviation);

#endif
