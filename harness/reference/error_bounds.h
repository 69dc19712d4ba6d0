/* How far a float32 kernel may be from the float64 reference by rounding alone. A bit of a code may differ from the reference's only where
   |z| is within this bound; errors of scores and outputs that follow from it are allowed too.

   u = 2^-24. A sum of n terms in float32, one after the other, is off by about 0.3 sqrt(n) u times the root of the sum of its squared
   terms; n roundings are counted as sqrt(n) u, and ERROR_BOUNDS_FACTOR times the result is the bound.

   BH4, repeat r: each of the four steps has n = b + log2 N roundings (n = N + log2 N in the last step of a repeat of which at most half
   is used, whose blocks may be added up in one sum). H_N spreads errors evenly over the repeat, and a step turns an error of variance v in
   every element into one of variance |W_s|^2 v (Frobenius norm):
       v_s = |W_s|^2 v_{s-1} + n u^2 mean(y_s^2)
       bound_j^2 = F^2 (decay^2 v_4 + n u^2 (|bias_j| + (1-decay) |x̂_j| + decay rms(L beta))^2 + (1-decay)^2 e_j^2)
   Dense, n = d:
       bound_j^2 = F^2 (n u^2 (|W_j∘x̂|^2 + (|bias_j| + |W_j beta|)^2) + the LayerNorm's part)
   L beta and W beta are there because the norm's beta may have been folded into the bias.

   LayerNorm with gain g: t = (x - mean) / sqrt(var + eps) is off by a common shift of sqrt(d)/2 u |mean| / sqrt(var + eps), from the mean,
   and by a common factor 1 + sqrt(d) u, from the variance (of the centred x: a variance as mean of squares minus square of the mean does
   not hold this bound). v_0 is the mean of e_i^2 = shift^2 g_i^2 + u^2 (d g_i^2 t_i^2 + x̂_i^2) over the N inputs; the dense projection
   sees both through its rows.

   A projection in i16 rounds the inputs of every product to multiples of U = largest |input| / 32767 of the token, one in i8 or i7 to
   multiples of at most U = largest |input| / 127 or 63, as each of its blocks has a largest input of its own: each is off by an amount
   spread evenly over one such unit, U^2/12 more in the variance of a step's inputs. ERROR_BOUNDS_INPUT_FACTOR then stands for F: a quarter
   of the bound, which is all that random tokens may use, is five standard deviations.
   The reference rounds inputs alike; the bound is for those half-way between two multiples, where float32 may take the other one.

   Tables of integers in units of their rows' scales: a kernel may round the scores of a token, scales included, to multiples of 1/32767
   of the largest (AVX2; 1/65535 elsewhere), with scores of 8 bits 1/127 (1/255). Each is then off by an amount spread evenly over one
   such unit;
   ERROR_BOUNDS_SCORE_FACTOR times the root of the sum of the squares of what that makes in y is the bound: a quarter of it, which is all
   that random tokens may use, is eight times that root.

   What passes is decided in harness/verify/: a score may be off by SAMPLE_TOLERANCE (sample.h) of its magnitude, what error_bounds_score
   allows, and SMALLEST_SHARE (hash_tally.c) of its terms, together; an output by SAMPLE_TOLERANCE, or else by a share of what
   error_bounds_gather allows. Where a token takes several rows of a table, sample_slack (sample.c) adds 2 tau u times the sum of |z|: two
   costs are compared, and each is a sum of up to tau of them.

   ERROR_BOUNDS_FACTOR scales the bounds of z and of the gather. Over random models the worst of some 100,000 errors of a plain float32
   kernel is 1/4 to 1/12 of the bound, 1/3 when N is 2 or 4. Of the elements of z of random tokens, 2e-5 or so lie within the bound;
   tests/verify/reference_test.c measures both. */
#ifndef LOOKUPC_HARNESS_REFERENCE_ERROR_BOUNDS_H
#define LOOKUPC_HARNESS_REFERENCE_ERROR_BOUNDS_H

#include "harness/reference/lookup.h"

#define ERROR_BOUNDS_UNIT 0x1p-24
#define ERROR_BOUNDS_FACTOR 16.0
#define ERROR_BOUNDS_INPUT_FACTOR 20.0
#define ERROR_BOUNDS_SCORE_LEVELS 32767.0
#define ERROR_BOUNDS_BYTE_SCORE_LEVELS 127.0
#define ERROR_BOUNDS_SCORE_FACTOR 32.0

typedef struct error_bounds error_bounds;

/* Prepares the bounds of one model, which must outlive them. NULL when memory is short. */
error_bounds *error_bounds_create(const reference_model *model, const reference_weights *weights);
void error_bounds_free(error_bounds *bounds);

/* The bound of every element of z for one input.  x [d], bound [h tau]. False when memory is short. */
bool error_bounds_project(const error_bounds *bounds, const double *x, double *bound);

/* The error of a vertex's score when each z of its table is off by at most its bound.  z, bound [tau]. */
double error_bounds_score(const reference_model *model, const double *z, const double *bound, size_t code);

/* The error |y - reference| of the output that rounding explains: *own is the gather's, *total has that of scores off by score_error[k]
   added, all of one table's at once.  code, score, score_error [h][neighbours]. False when a row cannot be read or memory is short. */
bool error_bounds_gather(const reference_model *model, const reference_weights *weights, const size_t *code, const double *score,
                         const double *score_error, double *own, double *total);

#endif
