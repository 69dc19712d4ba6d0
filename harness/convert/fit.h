/* Fits a LookupFFN to a dense FFN on activations that pass by: with the emitted kernels of training for the one, and those of a dense
   projection for the other. */
#ifndef LOOKUPC_CONVERT_FIT_H
#define LOOKUPC_CONVERT_FIT_H

#include "harness/train/rounding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What emit --training calls the parameters, the rates and the tokens of a LookupFFN. */
typedef struct {
    const float *projection, *projection_bias, *bias;
    float *tables, *state;
    const float *prepared;
} fit_parameters;

typedef struct {
    float rate, epsilon, beta1, beta2, correction1, correction2;
    int adam;
} fit_rates;

typedef struct {
    const float *x, *dy;
    float *y, *dx, *z;
    uint16_t *code;
    float *score, *slope;
    uint32_t *uses;
    size_t count;
} fit_tokens;

/* The weights of inference kernels without a norm, in float32. */
typedef struct {
    const float *projection, *projection_bias, *tables, *bias;
    int isa;
} fit_weights;

typedef void fit_prepare(const fit_parameters *, float *, void *);
typedef void fit_forward(const fit_parameters *, const fit_tokens *, size_t, size_t, void *);
typedef void fit_rows(const fit_parameters *, const fit_rates *, const fit_tokens *, size_t, size_t, void *);
typedef void fit_project(const fit_parameters *, const fit_tokens *, size_t, size_t, float *, void *);
typedef void fit_load(const float *restrict, size_t, float *restrict);
typedef void fit_product(const fit_weights *, const float *restrict, float *restrict, size_t);

/* The kernels and sizes of a LookupFFN: see <model>_train.h. In the sums of gradients those of the projection's folded weights come first.
 */
typedef struct {
    fit_prepare *prepare;
    fit_forward *forward;
    fit_rows *rows;
    fit_project *project;
    size_t d, h, neighbours, table_rows, bits, projection, prepared, sums, sums_projection_bias, sums_bias, pitch, z, slots, tile, whole,
        scratch;
    size_t block, blocks; /* of BH4: outputs of a block, blocks of one of the four stages; block 0: the projection is dense */
    double decay;         /* factor of the fourth stage */
} fit_lookup;

/* One product of the dense FFN: load is of the first one only. */
typedef struct {
    fit_load *load;
    fit_product *product;
    float *prepared, *bias;
} fit_dense;

typedef enum { FIT_RELU, FIT_GELU, FIT_GELU_TANH, FIT_SILU } fit_activation;

/* The dense FFN y = O f(M x), gated where there is a second M. */
typedef struct {
    fit_dense input, gate, output;
    const float *rows; /* M [f][d] and O [d][f] themselves */
    float *columns;
    bool gated;
    size_t d, f, tile;
    fit_activation activation;
} fit_teacher;

typedef struct fit fit;

/* A fit of at most `most` tokens a call; NULL: memory is short. Everything starts as zero. `linear`: the same projection under tables of
   one bit, whose kernels fit_imitate calls; may be NULL. x is always [tokens][d], what the dense FFN reads. */
fit *fit_create(const fit_lookup *lookup, const fit_lookup *linear, const fit_teacher *teacher, size_t most);
void fit_free(fit *f);

/* From now on passes forward read tables and projection as these round them, NULL: as they are; gradients pass through the rounding as they
   are. False: memory is short. */
bool fit_round(fit *f, const rounding *tables, const rounding *projection);

/* A parameter, "projection", "projection_bias", "bias" or "tables", which may be written; how many floats. */
float *fit_field(fit *f, const char *name, size_t *count);

/* Counts x for fit_imitate and for fit_centre. */
void fit_observe(fit *f, const float *x, size_t tokens);

/* Leaves the `count` hidden neurons whose outputs vary most, times the length of what they write, to a dense FFN beside the LookupFFN:
   neurons[count], in their order, for what was observed. Their columns of O become zeros, and what is fitted is the rest, whose last
   product is `rest`. False: memory is short. Comes before fit_centre. */
bool fit_keep(fit *f, size_t count, size_t *neurons);
void fit_set_rest(fit *f, const fit_dense *rest);

/* Makes the bias the mean of the targets for what was observed. */
void fit_centre(fit *f);

/* Makes z what the hidden neurons compute before their activation, without its mean: those whose outputs vary most, times the length of
   what they write; each of variance 1, in a random order. A projection with fewer parameters comes as near as `steps` steps of Adam bring
   it, with rates that fall from `rate` along a cosine. Returns the share of z's variance that it misses; negative: memory is short. */
double fit_imitate(fit *f, uint64_t seed, size_t steps, double rate);

/* Rates of the projection's folded weights and of the bias, by Adam, and of the tables, by row-wise Adagrad whose sums fade. */
typedef struct {
    double projection, tables, bias;
} fit_step_rates;

/* One step on the squared error for x; step n = 1, 2, ... */
void fit_step(fit *f, const float *x, size_t tokens, size_t n, const fit_step_rates *step);

/* Keeps codes, scores and targets of x for fit_solve. False: memory is short. */
bool fit_collect(fit *f, const float *x, size_t tokens);

/* Tables by least squares on what was collected, one table after the other, `sweeps` times. False: memory is short. */
bool fit_solve(fit *f, size_t sweeps, double ridge);

/* Tables as sums of the columns of O under the codes of the rows of M: those of neurons that stay beside are zeros. */
void fit_hash_rows(fit *f);

/* Adds x to what fit_unexplained and fit_uses tell. */
void fit_measure(fit *f, const float *x, size_t tokens);

/* The share of the variance of the dense FFN's outputs that is left unexplained; variance: that of a token's output, in all. */
double fit_unexplained(const fit *f, double *variance);

/* The share of rows that the measured tokens took, and the entropy of their codes in bits, mean over the tables. */
void fit_uses(const fit *f, double *share, double *entropy);

#endif
