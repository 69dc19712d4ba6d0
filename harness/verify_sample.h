/* Input tokens and what the reference makes of them: the answers that verify compares a kernel's with. */
#ifndef LOOKUPC_HARNESS_VERIFY_SAMPLE_H
#define LOOKUPC_HARNESS_VERIFY_SAMPLE_H

#include "reference.h"
#include "rounding.h"

#include <stdint.h>

typedef struct {
    const reference_model *model;
    const reference_weights *weights;
    size_t tokens;
    double share;                /* of what the rounding bounds allow, that an output may use when it is over the tolerance */
    float *x;                    /* [tokens][d] */
    double *z, *bound;           /* [tokens][h tau], and the rounding bound of each */
    double *score, *score_error; /* [tokens][h], without the model's scale */
    size_t *code;                /* [tokens][h]: the reference's; the kernel's after sample_set_code */
    double *row_scale;           /* [tokens][h]: the factor of the score that those codes' rows have; 1 without */
    double *y;                   /* [tokens][d_out] for those codes */
    double *gather_error;        /* [tokens]: |y - reference| that rounding in the gather explains */
    double *error;               /* [tokens]: the same with that of the scores */
} sample;

/* How an output compared with a sample. */
typedef struct {
    size_t compared, wrong;       /* tokens */
    size_t excused;               /* tokens over the tolerance, but within what rounding explains */
    size_t first_wrong;           /* its token */
    double first_error;           /* and relative error */
    double worst, worst_absolute; /* of all: |y - reference| / |reference|, and of one element */
} sample_tally;

/* Seeded random tokens: normal values, one scale a token from 1e-2 to 1e2, with an offset of up to some standard deviations when the model
   has a norm; no element is 0.  x [tokens][d] */
void sample_random(const reference_model *model, uint64_t seed, size_t tokens, float *x);

/* Tokens out of the ordinary: see sample_special_name.  x [SAMPLE_SPECIAL][d] */
enum { SAMPLE_SPECIAL = 6 };
void sample_special(const reference_model *model, uint64_t seed, float *x);
const char *sample_special_name(size_t token);

/* Shares for random tokens and for those out of the ordinary. A kernel's errors of z are a few hundredths of the bound, the worst of
   100,000 a quarter, and independent in the bits and tables of a token: a quarter is ample for a sum over them, where no offset far from 0
   moves all of z at once. Only where a sum nearly cancels is that more than the tolerance. */
#define SAMPLE_RANDOM_SHARE 0.25
#define SAMPLE_SPECIAL_SHARE 1.0

/* Takes x[tokens][d], from malloc, and computes what the reference has to say. False when memory is short or a table cannot be read; the
   sample is to be freed in either case. */
bool sample_create(sample *s, const reference_model *model, const reference_weights *weights, float *x, size_t tokens, double share);
void sample_free(sample *s);

/* Takes a kernel's codes [tokens][h], each below 2^tau, and recomputes their factors, y and the errors for them. */
bool sample_set_code(sample *s, const size_t *code);

/* The factor that a kernel's score has when it takes that row. */
double sample_row_scale(const sample *s, size_t token, size_t table, size_t code);

/* A bit of one token that may differ from the reference's: |z| is within the bound, which an exact 0 never is. */
bool sample_near(const sample *s, size_t token, size_t bit);

/* Compares y[tokens][d_out] with the sample, from its first token on and over again. The output of a token may also be the one for codes
   with near bits flipped. only_gather: y came from the sample's codes and scores. False when a table cannot be read. */
bool sample_compare(const sample *s, const float *y, size_t tokens, bool only_gather, sample_tally *tally);

#define SAMPLE_TOLERANCE 1e-5 /* of |y - reference| / |reference|, and of a score */

#endif
