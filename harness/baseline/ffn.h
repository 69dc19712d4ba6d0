/* The baseline: a dense FFN y = GELU(x W1ᵀ + b1) W2ᵀ + b2 of d -> hidden -> d_out through several libraries. */
#ifndef LOOKUPC_BASELINE_FFN_H
#define LOOKUPC_BASELINE_FFN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Random weights: w1 [hidden][d], b1 [hidden], w2 [d_out][hidden], b2 [d_out], all 64-byte aligned.
   GELU is its tanh form, 0.5 v (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3))), the cheaper one of the two in use. */
typedef struct baseline_weights {
    size_t d, hidden, d_out;
    float *w1, *b1, *w2, *b2;
    float low, high; /* the range of GELU's results that calibration saw, which 8 bits have to hold */
} baseline_weights;

/* One library's dense FFN with factors of one type. An FFN is made for one number of tokens, so that a library may choose weight layouts
   for it, and lives until the process ends. */
typedef struct baseline_library {
    const char *name;
    const char *type;        /* f32, bf16 or i8 */
    const char *description; /* what describe tells: "openblas_corename" */
    /* Returns NULL with one line in error on failure, an empty one where the library has no product of that type for this CPU. The weights
       must outlive it. All FFNs of a process have the same threads. */
    void *(*create)(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size);
    /* x [tokens][d], y [tokens][d_out]; x and y must not overlap. Returns false if the library reports an error. */
    bool (*run)(void *ffn, const float *x, float *y);
    /* What the library chose for this CPU, such as "SkylakeX"; at most size - 1 characters. */
    void (*describe)(char *text, size_t size);
    /* The library's names of the code that runs what it made, here or as a product (products.h). */
    const char *(*implementation)(const void *made);
    /* i8: the integer that stands for the largest weight of an output; else NULL. */
    int (*largest_weight)(void);
} baseline_library;

extern const baseline_library baseline_openblas;
extern const baseline_library baseline_onednn;
extern const baseline_library baseline_onednn_bf16;
extern const baseline_library baseline_onednn_i8;

/* Returns false when there is no memory. */
bool baseline_weights_create(baseline_weights *weights, size_t d, size_t hidden, size_t d_out, uint64_t seed);
void baseline_weights_destroy(baseline_weights *weights);

/* Finds the range of GELU's results for some of the tokens x [tokens][d]. */
void baseline_weights_calibrate(baseline_weights *weights, const float *x, size_t tokens);

double baseline_gelu(double v);

/* Adds a name to those in `names`, separated by ", ", unless it is there already, or there is no room. */
void baseline_add_name(char *names, size_t size, const char *name);

/* How far y of one token is from a plain double loop over the unrounded weights. */
typedef struct baseline_error {
    double relative;   /* ‖y − reference‖ / ‖reference‖ */
    double deviations; /* the largest |y − reference| of an output, in standard deviations of what rounding to the type explains */
} baseline_error;

enum { BASELINE_DEVIATIONS = 8 }; /* so many are right */

/* Of the token `token` of a call with x [tokens][d], whose y [d_out] the library returned. Both are infinite when y is not finite or there
   is no memory. */
baseline_error baseline_check(const baseline_library *library, const baseline_weights *weights, const float *x, size_t tokens, size_t token,
                              const float *y);

/* The largest |x| of count floats; on up to so many threads. */
float baseline_largest(const float *x, size_t count, size_t threads);

/* to[i] = x[i] / unit + 128, rounded; every |x[i]| is at most 127 units. */
void baseline_bytes(const float *x, size_t count, float unit, uint8_t *to, size_t threads);

/* scale_now[i] = scale[i] * unit, bias_now[i] = bias[i] / unit + offset[i]; none may overlap. */
void baseline_scales(const float *scale, const float *bias, const float *offset, size_t count, float unit, float *scale_now,
                     float *bias_now);

/* x[row][i] = GELU(x[row][i] + bias[i]), x [rows][columns], on up to so many threads; within 2e-7 of the exact value, relative to
   max(1, |x|). x and bias must not overlap. Cannot fail. */
void baseline_bias_gelu(float *x, const float *bias, size_t rows, size_t columns, size_t threads);

#endif
