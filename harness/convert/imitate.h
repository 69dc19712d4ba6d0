/* A projection that computes what hidden neurons of the dense FFN compute before their activation. */
#ifndef LOOKUPC_CONVERT_IMITATE_H
#define LOOKUPC_CONVERT_IMITATE_H

#include "harness/convert/fit.h"

/* Sums over tokens: of x and its products with itself, and of the hidden neurons' outputs and their squares. */
typedef struct {
    size_t tokens;
    double *x, *hidden, *squares; /* [d], [f], [f] */
    float *products;              /* [d][d], the upper half */
} imitate_moments;

typedef struct {
    double weight;
    size_t neuron;
} imitate_rank;

/* ranks[f]: the hidden neurons, those first whose outputs vary most, times the length of what they write. */
void imitate_sort(const fit_teacher *teacher, const imitate_moments *m, imitate_rank *ranks);

/* The neurons that `bits` bits imitate: weights[bits][d]. Those whose outputs vary most, times the length of what they write;
   where there are too few, sums of two. Each of variance 1, in a random order. False: memory is short. */
bool imitate_targets(const fit_teacher *teacher, const imitate_moments *m, size_t bits, uint64_t seed, float *weights);

/* Fits the BH4 projection of `linear`, a LookupFFN of one-bit tables, to weights[bits][d] on the tokens' covariance, and writes it and the
   bias that makes z's mean zero; projection holds its random start. Returns the share of the variance of z that it misses; negative: memory
   is short. */
double imitate_fit(const fit_lookup *linear, const imitate_moments *m, const float *weights, size_t steps, double rate, float *projection,
                   float *projection_bias);

/* The same of a dense projection, [bits][d], which misses nothing. */
void imitate_exactly(const imitate_moments *m, const float *weights, size_t d, size_t bits, float *projection, float *projection_bias);

#endif
