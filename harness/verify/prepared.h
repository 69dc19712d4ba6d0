/* What the variants of one model with one set of weights have in common when they are verified: the blob, the reference's weights, and its
   answers for the input tokens. Made once, before any of them runs; their processes inherit it. */
#ifndef LOOKUPC_HARNESS_VERIFY_REFERENCE_H
#define LOOKUPC_HARNESS_VERIFY_REFERENCE_H

#include "harness/reference/checkpoint.h"
#include "harness/reference/projection.h"
#include "harness/reference/row_cache.h"
#include "harness/reference/tables.h"
#include "harness/verify/sample.h"

#include "gen/host/files.h"

typedef struct {
    reference_model model;
    uint64_t seed;
    files_mapping blob;
    checkpoint *file;
    reference_tables tables;
    reference_weights weights, exact_weights; /* as the blob holds them; as the checkpoint does */
    row_cache rows, exact_rows;
    double *multiplied;     /* memory of a projection multiplied out */
    double *projection;     /* memory of `weights` */
    sample random, special; /* by those weights */
    sample exact;           /* the random tokens by the checkpoint's own; without tokens where these are the same */
} verify_reference;

/* The files and types of a reference. */
typedef struct {
    const char *blob, *weights, *prefix; /* the prefix must outlive the reference */
    bool blocks_in_out;
    reference_form form; /* that kernels have the projection in */
    bool byte_scores;    /* kernels may round scores to 7 bits, not to 15 */
    reference_type tables, projection;
} verify_sources;

/* Opens the reference of `model` and computes the special tokens. False with one line; to be closed in either case. */
bool verify_reference_open(verify_reference *reference, const reference_model *model, uint64_t seed, const verify_sources *sources,
                           char *error, size_t error_size);

/* Makes sure that at least so many random tokens are computed. False with one line. */
bool verify_reference_extend(verify_reference *reference, size_t tokens, char *error, size_t error_size);

/* The random tokens by the checkpoint's own weights. */
const sample *verify_reference_exact(const verify_reference *reference);

/* All zeros are allowed. */
void verify_reference_close(verify_reference *reference);

#endif
