/* The job of the measuring process: which libraries, stages and batches to time. Read from JSON, every field checked. */
#ifndef LOOKUPC_MEASURE_JOB_H
#define LOOKUPC_MEASURE_JOB_H

#include "variant.h"

#include "limits.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One compiled variant of the emitted FFN, timed at the batches from least_batch to most_batch. */
typedef struct measure_variant_job {
    const char *name, *blob;
    size_t least_batch, most_batch;
    variant_description variant;
} measure_variant_job;

typedef struct measure_job {
    const char *model;
    size_t d, d_out, h, tau, neighbours, dense_hidden;
    uint64_t seed;
    size_t *batches, batch_count, largest_batch;
    size_t threads; /* that the libraries use at most, and the dense FFNs */
    size_t repetitions;
    double min_time;    /* seconds of one repetition */
    limits_sizes sizes; /* for the limits of this core */
    limits_rows *rows;  /* that sizes refers to */
    const char **dense;
    size_t dense_count;
    measure_variant_job *variants;
    size_t variant_count;
    void *text; /* owns the strings */
} measure_job;

/* Returns false with one line "path: field: value: rule" in error. All fields are required, others are ignored. */
bool measure_job_read(const char *path, measure_job *job, char *error, size_t error_size);
void measure_job_release(measure_job *job);

#ifdef __cplusplus
}
#endif

#endif
