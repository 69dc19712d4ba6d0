/* What all jobs of the measuring process say about how it measures. */
#ifndef LOOKUPC_MEASURE_TIMING_JOB_H
#define LOOKUPC_MEASURE_TIMING_JOB_H

#include "harness/measure/limits.h"
#include "harness/measure/reader.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct measure_timing_job {
    const char *model;
    uint64_t seed;
    size_t threads; /* that the libraries use at most, and the baselines */
    size_t repetitions;
    double min_time; /* seconds of one repetition */
    size_t slices;   /* of a repetition at most, which rotate among calls that are alike; 0: none */
    bool draw_order; /* anew in every repetition, from order_seed; else as listed */
    uint64_t order_seed;
    bool alike;         /* calls of the same kind are, so that what the first one needs for min_time is enough for all */
    size_t sweep_bytes; /* to be read to empty the caches */
    bool limits;        /* measure those of this core */
    limits_sizes sizes; /* for that */
    limits_rows *rows;  /* that sizes refers to */
} measure_timing_job;

/* All fields are required, sizes only with limits; others are ignored. Texts belong to root. What is read lives until the process ends. */
bool measure_timing_job_read(measure_reader *in, const json_t *root, measure_timing_job *job);

#ifdef __cplusplus
}
#endif

#endif
