/* A job of the measuring process: which blocks of transformers, parts of them and baselines to time. Read from JSON, every field checked.
 */
#ifndef LOOKUPC_MEASURE_TRANSFORMER_JOB_H
#define LOOKUPC_MEASURE_TRANSFORMER_JOB_H

#include "harness/measure/timing_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiled blocks and their packed weights. `call` is the function for many tokens: prefill, encode, or encode_batch. */
typedef struct measure_transformer {
    const char *name, *library, *bind, *call, *blob;
    size_t scratch_bytes, weights_struct_bytes;
} measure_transformer;

/* A call for so many tokens from a position on. `transformer` is an index. */
typedef struct measure_transformer_call {
    const char *name;
    size_t transformer, tokens, position;
} measure_transformer_call;

/* Reading `bytes` of the weights of blocks, or of the cache: what bounds a call. */
typedef struct measure_read {
    const char *name;
    bool cache;
    size_t transformer, bytes;
} measure_read;

/* A product of the baselines. */
typedef struct measure_product {
    size_t inputs, outputs;
} measure_product;

/* All products, one after the other, through a library with weights of a type. */
typedef struct measure_products_call {
    const char *name, *library, *type;
    size_t tokens;
} measure_products_call;

typedef struct measure_attention_call {
    const char *name, *library;
    size_t tokens, position;
} measure_attention_call;

typedef struct measure_transformer_job {
    measure_timing_job timing;
    size_t d, cache_bytes;                 /* of each of timing.threads callers, whose cache is shared by all blocks */
    size_t fill, filled;                   /* the blocks that fill the cache's first positions, how many */
    size_t heads, kv_heads, width, layers; /* of the baselines' attention */
    bool causal;                           /* else blocks encode: positions are 0 */
    size_t sequence;                       /* tokens at most of each of the sequences that blocks encode together; 0: they encode one */
    measure_transformer *transformers;
    measure_transformer_call *calls;
    measure_read *reads;
    measure_product *products;
    measure_products_call *product_calls;
    measure_attention_call *attention_calls;
    size_t transformer_count, call_count, read_count, product_count, product_call_count, attention_call_count;
} measure_transformer_job;

/* All fields are required; others are ignored. Texts belong to root. What is read lives until the process ends. */
bool measure_transformer_job_read(measure_reader *in, const json_t *root, measure_transformer_job *job);

#ifdef __cplusplus
}
#endif

#endif
