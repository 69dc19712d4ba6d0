/* The baselines of a transformer's blocks: products y = x Wᵀ and attention with a score matrix, through several libraries. */
#ifndef LOOKUPC_BASELINE_PRODUCTS_H
#define LOOKUPC_BASELINE_PRODUCTS_H

#include "harness/baseline/ffn.h"

/* weights [outputs][inputs] */
typedef struct baseline_matrix {
    size_t inputs, outputs;
    const float *weights;
} baseline_matrix;

/* Attention of `tokens` queries from `position` on, for `layers` independent sets of keys and values: causal, or of every query to all
   tokens. The heads / kv_heads queries of a group share their keys and values. q and y [tokens][heads][width], keys and values
   [layers][position + tokens][kv_heads][width]. */
typedef struct baseline_attention {
    size_t heads, kv_heads, width, tokens, position, layers;
    bool causal;
    const float *q, *keys, *values;
} baseline_attention;

/* One library. What it makes reads its inputs where they lie; weights it may copy into a layout and a type of its own. All that is made
   lives until the process ends. Failures come with one line in error; it is empty where the library has no such product for this CPU. */
typedef struct baseline_product_library {
    const baseline_library *dense; /* the same one's dense FFN in float32: name, description, implementation */
    /* A product of x [tokens][inputs], numbers from 0 to 1. type: f32, bf16, i8 (both factors are integers of 8 bits) */
    void *(*product)(const baseline_matrix *matrix, const char *type, size_t tokens, const float *x, char *error, size_t error_size);
    bool (*multiply)(void *product, float *y); /* y [tokens][outputs] */
    void *(*attention)(const baseline_attention *of, char *error, size_t error_size);
    bool (*attend)(void *attention, float *y); /* that of the last layer stays in y */
} baseline_product_library;

extern const baseline_product_library baseline_products_openblas;
extern const baseline_product_library baseline_products_onednn;

/* How far y may be off for weights of that type. */
double baseline_product_tolerance(const char *type);

/* The error ‖y − reference‖ / ‖reference‖ of some outputs of the first and the last token, against plain double loops; of some heads.
   Returns infinity when y is not finite. */
double baseline_product_error(const baseline_matrix *matrix, size_t tokens, const float *x, const float *y);
double baseline_attention_error(const baseline_attention *of, const float *y);

/* Products of queries and keys become weights: rows of score [tokens][position + tokens] of a head, of one token [heads /
   kv_heads][position + 1], are the softmax of what their query sees, over the root of width; zeros follow. */
void baseline_softmax(const baseline_attention *of, float *score);

#endif
