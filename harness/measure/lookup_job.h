/* A job of the measuring process: which LookupFFNs, dense FFNs, stages and batches to time. Read from JSON, every field checked. */
#ifndef LOOKUPC_MEASURE_FFN_JOB_H
#define LOOKUPC_MEASURE_FFN_JOB_H

#include "harness/base/variant.h"
#include "harness/measure/timing_job.h"

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

typedef struct measure_ffn_job {
    measure_timing_job timing; /* order as listed: variants, then dense FFNs; alike: the variants */
    size_t d, d_out, h, tau, neighbours, baseline_hidden;
    size_t *batches, batch_count, largest_batch;
    bool stages; /* time project and gather alone, too, and the whole again at the largest batch */
    measure_condition conditions[4];
    size_t condition_count;
    bool take_turns; /* each repetition has the next one of the conditions; else each has all */
    const char **dense;
    size_t baseline_count;
    measure_variant_job *variants;
    size_t variant_count;
} measure_ffn_job;

/* All fields are required; others are ignored. Texts belong to root. What is read lives until the process ends. */
bool measure_ffn_job_read(measure_reader *in, const json_t *root, measure_ffn_job *job);

#ifdef __cplusplus
}
#endif

#endif
