/* A job of the measuring process: which blocks of transformers, parts of them and rivals to time. Read from JSON, every field checked. */
#ifndef LOOKUPC_MEASURE_BLOCKS_JOB_H
#define LOOKUPC_MEASURE_BLOCKS_JOB_H

#include "harness/measure/timing_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiled blocks and their packed weights. `call` is the function for many tokens: prefill, or encode. */
typedef struct measure_blocks {
    const char *name, *library, *bind, *call, *blob;
    size_t scratch_bytes, weights_struct_bytes;
} measure_blocks;

/* A call for so many tokens from a position on. `blocks` is an index. */
typedef struct measure_blocks_call {
    const char *name;
    size_t blocks, tokens, position;
} measure_blocks_call;

/* Reading `bytes` of the weights of blocks, or of the cache: what bounds a call. */
typedef struct measure_read {
    const char *name;
    bool cache;
    size_t blocks, bytes;
} measure_read;

/* A product of the rivals. */
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

typedef struct measure_blocks_job {
    measure_timing_job timing;
    size_t d, cache_bytes;                 /* one cache is shared by all blocks */
    size_t fill, filled;                   /* the blocks that fill the cache's first positions, how many */
    size_t heads, kv_heads, width, layers; /* of the rivals' attention */
    bool causal;                           /* else blocks encode: positions are 0 */
    measure_blocks *blocks;
    measure_blocks_call *calls;
    measure_read *reads;
    measure_product *products;
    measure_products_call *product_calls;
    measure_attention_call *attention_calls;
    size_t blocks_count, call_count, read_count, product_count, product_call_count, attention_call_count;
} measure_blocks_job;

/* All fields are required; others are ignored. Texts belong to root. What is read lives until the process ends. */
bool measure_blocks_job_read(measure_reader *in, const json_t *root, measure_blocks_job *job);

#ifdef __cplusplus
}
#endif

#endif
