/* The timing of the measuring process: calls in interleaved repetitions, and what stands beside them in its output. */
#ifndef LOOKUPC_MEASURE_TIMING_H
#define LOOKUPC_MEASURE_TIMING_H

#include "harness/measure/job.h"

/* One thing to be timed. A cold one is called with nothing of what it reads in the caches. */
typedef struct timed_call {
    const char *name;
    bool (*run)(void *self, size_t caller); /* returns false on failure */
    void *self;
    size_t callers, threads; /* callers at a time, numbered from 0; threads that all of them have */
    bool cold;
    size_t turn, turns; /* it is timed in repetitions turn, turn + turns, … */
    const char *alike;  /* calls with the same text here are made equally often; NULL: no others */
} timed_call;

/* What all jobs say about how they are measured, the calls, and facts that stand beside their times. */
typedef struct timing {
    const job_object *job; /* of the process */
    double start;          /* likewise */
    uint64_t seed;
    size_t threads; /* that the libraries use at most, and the baselines */
    size_t repetitions;
    double min_time; /* seconds of one repetition */
    size_t slices;   /* of a repetition at most, which rotate among calls that are alike; 0: none */
    bool draw_order; /* anew in every repetition, from order_seed; else as listed */
    uint64_t order_seed;
    size_t sweep_bytes; /* to be read to empty the caches */
    timed_call *calls;
    size_t count;
    json_t *notes;
} timing;

enum { TIMING_SLICES = 64 }; /* at most */

/* What the job says, with the limits of this core, measured now, if it wants them. */
timing timing_of(const job_object *job);

/* Adds a call, whose name nobody has. */
void timing_add(timing *to, timed_call call);

void timing_note(timing *to, const char *key, const char *value);
void timing_note_number(timing *to, const char *key, double value);

/* Of the call `name`: what runs it in its library. */
void timing_note_implementation(timing *to, const char *name, const char *value);

/* "measuring 12/245 ffn/avx512/4096", in place, on a terminal only. */
void timing_show(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Times all calls in each repetition, in an order of its own if the job wants it drawn, and writes the file `out`. */
void timing_run(timing *of, const char *out);

#endif
