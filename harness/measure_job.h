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

/* What the calls of the whole FFN find: inputs whose codes are skewed as those of text are, or uniform; tables in the caches, as far as
   they fit, or not. */
typedef struct measure_condition {
    bool skewed, cold;
} measure_condition;

/* "/uniform_warm" and so on: the end of a measurement's name. */
const char *measure_condition_suffix(const measure_condition *condition);

typedef struct measure_job {
    const char *model;
    size_t d, d_out, h, tau, neighbours, dense_hidden;
    uint64_t seed;
    size_t *batches, batch_count, largest_batch;
    size_t threads; /* that the libraries use at most, and the dense FFNs */
    size_t repetitions;
    double min_time; /* seconds of one repetition */
    bool draw_order; /* anew in every repetition, from order_seed; else as listed: variants, then dense FFNs */
    uint64_t order_seed;
    bool stages; /* time project and gather alone, too, and the whole again at the largest batch */
    measure_condition conditions[4];
    size_t condition_count;
    bool take_turns;    /* each repetition has the next one of the conditions; else each has all */
    bool alike;         /* the variants are, so that what the first one needs for min_time is enough for all */
    size_t sweep_bytes; /* to be read to empty the caches */
    bool limits;        /* measure those of this core */
    limits_sizes sizes; /* for that */
    limits_rows *rows;  /* that sizes refers to */
    const char **dense;
    size_t dense_count;
    measure_variant_job *variants;
    size_t variant_count;
    void *text; /* owns the strings */
} measure_job;

/* Returns false with one line "path: field: value: rule" in error. All fields are required, sizes only with limits; others are ignored. */
bool measure_job_read(const char *path, measure_job *job, char *error, size_t error_size);
void measure_job_release(measure_job *job);

#ifdef __cplusplus
}
#endif

#endif
