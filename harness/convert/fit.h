/* Fits a LookupFFN to a dense FFN on activations that pass by: with the emitted kernels of training for the one, and those of a dense
   projection for the other. */
#ifndef LOOKUPC_CONVERT_FIT_H
#define LOOKUPC_CONVERT_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What emit --training calls the parameters and the rates of a LookupFFN. */
typedef struct {
    const float *projection, *projection_bias, *bias;
    float *tables, *state;
    const float *prepared;
} fit_parameters;

typedef struct {
    float rate, epsilon, beta1, beta2, correction1, correction2;
    int adam;
} fit_rates;

/* The weights of inference kernels without a norm, in float32. */
typedef struct {
    const float *projection, *projection_bias, *tables, *bias;
    int isa;
} fit_weights;

typedef void fit_prepare(const fit_parameters *, float *, void *);
typedef void fit_forward(const fit_parameters *, const float *, float *, size_t, float *, uint16_t *, float *, void *);
typedef void fit_rows(const fit_parameters *, const fit_rates *, const float *, size_t, const uint16_t *, const float *, float *,
                      uint32_t *, size_t, size_t, void *);
typedef void fit_project(const fit_parameters *, const float *, const float *, size_t, const float *, const uint16_t *, const float *,
                         float *, float *, void *);
typedef void fit_finish(const float *, size_t, float *, float *, float *, void *);
typedef void fit_load(const float *restrict, size_t, float *restrict);
typedef void fit_product(const fit_weights *, const float *restrict, float *restrict, size_t);

/* The kernels and sizes of the LookupFFN: see <model>_train.h. */
typedef struct {
    fit_prepare *prepare;
    fit_forward *forward;
    fit_rows *rows;
    fit_project *project;
    fit_finish *finish;
    size_t d, h, neighbours, table_rows, bits, projection, prepared, sums, pitch, z, slots, tile, whole, scratch;
} fit_lookup;

/* One product of the dense FFN: load is of the first one only. */
typedef struct {
    fit_load *load;
    fit_product *product;
    float *prepared, *bias;
} fit_dense;

typedef enum { FIT_RELU, FIT_GELU, FIT_GELU_TANH, FIT_SILU } fit_activation;

/* The dense FFN y = O f(M x), gated where there is a second M; x = norm(u). */
typedef struct {
    fit_dense input, gate, output;
    bool gated, rms;
    size_t d, f, tile;
    fit_activation activation;
    const float *gain, *offset; /* [d]; offset may be NULL */
    double eps;
} fit_teacher;

typedef struct fit fit;

/* A fit of at most `most` tokens a call; NULL: memory is short. The projection [projection] and everything else is zero. */
fit *fit_create(const fit_lookup *lookup, const fit_teacher *teacher, size_t most);
void fit_free(fit *f);

/* The parameters: field "projection", "projection_bias", "bias" or "tables"; how many floats. */
float *fit_field(fit *f, const char *name, size_t *count);

/* Makes the bias the mean of the dense FFN's outputs for u[tokens][d]. */
void fit_centre(fit *f, const float *u, size_t tokens);

/* One step of Adam on the squared error for u[tokens][d]; step n = 1, 2, ... */
void fit_step(fit *f, const float *u, size_t tokens, size_t n, double projection_rate, double table_rate);

/* Keeps codes, scores and targets of u[tokens][d] for fit_solve. False: memory is short. */
bool fit_collect(fit *f, const float *u, size_t tokens);

/* Tables by least squares on what was collected, one table after the other, `sweeps` times. */
void fit_solve(fit *f, size_t sweeps, double ridge);

/* Tables as sums of the dense FFN's output rows under the codes of its input rows: in_rows [f][d], out_rows [f][d]. */
void fit_hash_rows(fit *f, const float *in_rows, const float *out_rows, size_t count);

/* Adds u[tokens][d] to what fit_figures tells: the share of the outputs' variance that is left unexplained. */
void fit_measure(fit *f, const float *u, size_t tokens);
double fit_unexplained(const fit *f);

/* The share of rows that the measured tokens took, and the entropy of their codes in bits, mean over the tables. */
void fit_uses(const fit *f, double *share, double *entropy);

#endif
