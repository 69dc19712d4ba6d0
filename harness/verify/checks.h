/* The checks of one compiled variant against the reference, and how they report. They run in a process of their own: what they call may
   crash. */
#ifndef LOOKUPC_HARNESS_VERIFY_CHECKS_H
#define LOOKUPC_HARNESS_VERIFY_CHECKS_H

#include "harness/verify/prepared.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { VERIFY_COUNTS = 16 };

/* What a job says of a variant; the strings belong to the job. */
typedef struct {
    const char *library;                 /* path of the shared library */
    const char *bind, *project, *gather; /* names of the functions */
    const char *ffn;                     /* that run calls, bench times and verify checks */
    const char *any_ffn;                 /* the variant's for any number of tokens, in threads where the library has them */
    const char *public_ffn;              /* the model's */
    size_t tile, chunk;                  /* tokens */
    size_t whole;                        /* tokens of a chunk, up to which it gathers whole rows; 0: none do */
    size_t scratch_bytes;                /* of a call of any number of tokens */
    size_t scratch_bytes_one;            /* of one token, to any_ffn or public_ffn */
    size_t weights_struct_bytes;
    size_t d, d_out, h, tau, neighbours;
} variant_description;

typedef struct {
    variant_description variant;
    const verify_reference *reference;   /* with at least `tokens` random tokens */
    size_t tokens;                       /* of them to use: at least tile + 1 */
    size_t counts[VERIFY_COUNTS], count; /* of tokens, at which the variant's any_ffn is compared with its ffn */
    size_t least, most;                  /* tokens of calls that the public function answers by this variant; most 0: of none */
    double work;                         /* multiplications that one call with more tokens than `tokens` is worth */
    bool bind_known;                     /* that the same bind refuses damaged blobs */
    bool quick;                          /* codes and outputs of `tokens` tokens only, and no copy of the blob */
} verify_job;

enum { VERIFY_STAGE_SIZE = 256 };

/* What is being called, for whoever finds that it crashed or hangs; shared with another process. */
typedef struct {
    atomic_size_t count; /* of calls until now: one more tells that it goes on */
    char words[VERIFY_STAGE_SIZE];
} verify_stage;

/* Where results go, one line each, flushed at once: "+name\tdetail" a check that held, "-name\tdetail" one that did not, "=key value" a
   number, "!message" why nothing could be checked, "." the end. */
typedef struct {
    FILE *stream;
    verify_stage *stage;
} verify_report;

/* Runs all checks. Ends the process when memory is short. */
void verify_run(const verify_job *job, const verify_report *report);

#endif
