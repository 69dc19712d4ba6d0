/* Codes and scores that a kernel has found for a token, beside the reference's. */
#ifndef LOOKUPC_HARNESS_VERIFY_HASH_TALLY_H
#define LOOKUPC_HARNESS_VERIFY_HASH_TALLY_H

#include "harness/verify/sample.h"

enum { HASH_TALLY_TEXT = 256 };

typedef struct {
    size_t compared; /* codes */
    size_t flips;    /* that are not among the reference's best */
    size_t within;   /* tables where rounding may take another code */
    size_t wrong_codes, wrong_scores;
    double worst_score; /* error, relative to the magnitude of the terms */
    char first_code[HASH_TALLY_TEXT], first_score[HASH_TALLY_TEXT];
} hash_tally;

/* Compares code, score[slots] of one token with the sample; scores have the factors of their rows.  seen [2^tau]: zeros, also afterwards */
void hash_compare(const sample *s, size_t token, const size_t *code, const float *score, bool *seen, hash_tally *tally);

#endif
