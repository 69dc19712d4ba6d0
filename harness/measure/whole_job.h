/* A job of the measuring process: which whole models to time, and how they are called. Read from JSON, every field checked. */
#ifndef LOOKUPC_MEASURE_WHOLE_JOB_H
#define LOOKUPC_MEASURE_WHOLE_JOB_H

#include "harness/measure/timing_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled model and its packed weights. An encoder has `encode_batch`, a decoder the other functions. */
typedef struct measure_whole {
    const char *name, *library, *blob, *bind, *encode_batch, *start, *prefill, *step;
    size_t weights_struct_bytes, state_bytes, state_header, scratch_bytes, d_out, vocab;
} measure_whole;

/* A call. An encoder's: so many sequences of so many tokens. A decoder's: `tokens` appended to an empty sequence, or, if `step`, one token
   behind `position` others. `model` is an index. */
typedef struct measure_whole_call {
    const char *name;
    size_t model, tokens, sequences, position;
    bool step;
} measure_whole_call;

typedef struct measure_whole_job {
    measure_timing_job timing;
    bool causal; /* decoders, else encoders */
    measure_whole *models;
    measure_whole_call *calls;
    size_t model_count, call_count;
} measure_whole_job;

/* All fields are required; others are ignored. Texts belong to root. What is read lives until the process ends. */
bool measure_whole_job_read(measure_reader *in, const json_t *root, measure_whole_job *job);

#ifdef __cplusplus
}
#endif

#endif
