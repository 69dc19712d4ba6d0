/* Input tokens and what the reference makes of them: the answers that verify compares a kernel's with. */
#ifndef LOOKUPC_HARNESS_VERIFY_SAMPLE_H
#define LOOKUPC_HARNESS_VERIFY_SAMPLE_H

#include "harness/reference/error_bounds.h"
#include "harness/reference/lookup.h"

#include <stdint.h>

/* A slot of a token is one of the rows that it takes: [h][neighbours]. */
typedef struct {
    const reference_model *model;
    const reference_weights *weights;
    size_t tokens;
    double share;      /* of what the rounding bounds allow, that an output may use when it is over the tolerance */
    float *x;          /* [tokens][d] */
    double *z, *bound; /* [tokens][h tau], and the rounding bound of each */
    double *most_cost; /* [tokens][h]: the reference_cost of the last of the best vertices */
    bool *near;        /* [tokens][h]: whether rounding may take another vertex in place of one of them */
    /* Of the reference's best codes, or of a kernel's after sample_with_codes: */
    size_t *code;                /* [tokens][slots] */
    double *score, *score_error; /* [tokens][slots], without the model's scale */
    double *row_scale;           /* [tokens][slots]: the factor of the score that the codes' rows have; 1 without */
    double *y;                   /* [tokens][d_out] */
    double *gather_error;        /* [tokens]: |y - reference| that rounding in the gather explains */
    double *error;               /* [tokens]: the same with that of the scores */
} sample;

/* How an output compared with a sample. */
typedef struct {
    size_t compared, wrong;       /* tokens */
    size_t excused;               /* tokens over the tolerance, but within what rounding explains */
    size_t moved;                 /* of these, tokens an input of whose products was rounded to another multiple than the reference's */
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

/* Of what rounding the inputs of products allows, the share that an output may use where kernels and reference round them alike. */
#define SAMPLE_SAME_ROUNDING 0.02

/* The share of codes, scores or tokens that kernels may round in another way: float32 decides otherwise where an input is half-way within
   some 2^-20 of the largest, the more often the finer its unit is. Measured: 1/80 in i8, 1/2 in i16. */
double sample_moved_share(const reference_weights *weights);

/* A sample starts with its model, weights and share, and has no tokens. This gives it those of x[tokens][d], from malloc, which begins with
   the tokens that it has, and computes what the reference has to say of the new ones, for its own best codes. Takes x. False when memory is
   short or a table cannot be read; the sample is to be freed in either case. */
bool sample_extend(sample *s, float *x, size_t tokens);
void sample_free(sample *s);

/* s <- the sample `from` with a kernel's codes [tokens][slots], each below 2^tau, and scores, factors, y and errors for them: computed
   only where they are others than those of `from`. Shares x to near with it, which must outlive s. False as above. */
bool sample_with_codes(sample *s, const sample *from, const size_t *code);

/* A bit of the only code that a token takes of a table may differ from the reference's: |z| is within the bound, which an exact 0 never
   is.  bit [h tau] */
bool sample_near_bit(const sample *s, size_t token, size_t bit);

/* How much the difference of two vertices' costs may be off: the bounds of the bits in which they differ and, where costs are summed, the
   rounding of sums of |z|. */
double sample_slack(const sample *s, size_t token, size_t table, size_t code, size_t other);

/* Compares y[tokens][d_out] with the sample, from its first token on and over again. The output of a token may also be the one with other
   vertices in place of near ones. only_gather: y came from the sample's codes and scores. False when a table cannot be read. */
bool sample_compare(const sample *s, const float *y, size_t tokens, bool only_gather, sample_tally *tally);

#define SAMPLE_TOLERANCE 1e-5 /* of |y - reference| / |reference|, and of a score */

#endif
