/* The baseline: a dense FFN y = GELU(x W1ᵀ + b1) W2ᵀ + b2 of d -> hidden -> d_out through several libraries. */
#ifndef LOOKUPC_BASELINE_FFN_H
#define LOOKUPC_BASELINE_FFN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Random weights: w1 [hidden][d], b1 [hidden], w2 [d_out][hidden], b2 [d_out], all 64-byte aligned.
   GELU is its tanh form, 0.5 v (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3))), the cheaper one of the two in use. */
typedef struct baseline_weights {
    size_t d, hidden, d_out;
    float *w1, *b1, *w2, *b2;
} baseline_weights;

/* One library's dense FFN. An FFN is made for one number of tokens, so that a library may choose weight layouts for it. */
typedef struct baseline_library {
    const char *name;
    const char *description; /* what describe tells: "openblas_corename" */
    /* Returns NULL with one line in error on failure. The weights must outlive the FFN. All FFNs of a process have the same threads. */
    void *(*create)(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size);
    /* x [tokens][d], y [tokens][d_out]; x and y must not overlap. Returns false if the library reports an error. */
    bool (*run)(void *ffn, const float *x, float *y);
    void (*destroy)(void *ffn);
    /* What the library chose for this CPU, such as "SkylakeX"; at most size - 1 characters. */
    void (*describe)(char *text, size_t size);
} baseline_library;

extern const baseline_library baseline_openblas;
extern const baseline_library baseline_onednn;

/* Returns false when there is no memory. */
bool baseline_weights_create(baseline_weights *weights, size_t d, size_t hidden, size_t d_out, uint64_t seed);
void baseline_weights_destroy(baseline_weights *weights);

/* The error ‖y − reference‖ / ‖reference‖ of one token, x [d], y [d_out], against a plain double loop.
   Returns infinity when y is not finite or there is no memory. */
double baseline_relative_error(const baseline_weights *weights, const float *x, const float *y);

/* x[row][i] = GELU(x[row][i] + bias[i]), x [rows][columns], on up to so many threads; within 2e-7 of the exact value, relative to
   max(1, |x|). x and bias must not overlap. Cannot fail. */
void baseline_bias_gelu(float *x, const float *bias, size_t rows, size_t columns, size_t threads);

#ifdef __cplusplus
}
#endif

#endif
