/* oneDNN in C: primitives with everything that they take. What is made lives until the process ends. */
#ifndef LOOKUPC_BASELINE_ONEDNN_H
#define LOOKUPC_BASELINE_ONEDNN_H

#include <dnnl.h>
#include <stdbool.h>
#include <stddef.h>

/* The stream that primitives run on, and the first failure: after it nothing more is made. What is made begins with its work. */
typedef struct onednn_work {
    dnnl_stream_t stream;
    dnnl_status_t status;
    char implementation[128]; /* oneDNN's names of what it chose for the products: "brgemm:avx512_core_amx_int8" */
} onednn_work;

/* All products of this process have `threads` threads. */
onednn_work onednn_begin(size_t threads);

/* Notes what a call of oneDNN returned. */
void onednn_note(onednn_work *work, dnnl_status_t status);

/* Whether all was made. If not, error is one line about products of the type `type`, an empty one where oneDNN has none for this CPU. */
bool onednn_made(const onednn_work *work, const char *type, size_t tokens, char *error, size_t error_size);

/* Memory of zeros. NULL, a noted failure, when there is none. */
void *onednn_room(onednn_work *work, size_t bytes);

/* Numbers that lie at `data`; DNNL_MEMORY_ALLOCATE: in a room of their own; NULL: they are pointed to later. */
dnnl_memory_t onednn_matrix(onednn_work *work, dnnl_data_type_t type, size_t rows, size_t columns, const void *data);
const dnnl_memory_desc_t *onednn_layout(dnnl_memory_t memory);

/* A primitive and its arguments: those that onednn_primitive_of binds, and one more. */
typedef struct onednn_primitive {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[6];
    int count;
} onednn_primitive;

/* The best primitive for what an operation of oneDNN describes. Source, weights, bias and destination are still without data. Takes the
   attributes, NULL for none. */
onednn_primitive onednn_primitive_of(onednn_work *work, const void *operation, dnnl_primitive_attr_t attributes);

/* y = scale (x Wᵀ + bias), x [tokens][inputs], W [outputs][inputs]. */
typedef struct onednn_product {
    const char *type; /* f32, bf16, or i8: x is u8, W s8 */
    size_t tokens, inputs, outputs;
    dnnl_data_type_t result;
    const float *bias;  /* [outputs]; NULL for none */
    const float *scale; /* [1], by output [outputs]; NULL for none, by output it is an argument of the call */
    bool by_output;
    bool gelu;
    float unit, zero; /* of a result that is u8: y / unit + zero */
} onednn_product;

dnnl_data_type_t onednn_type_of_x(const char *type);
onednn_primitive onednn_inner_product(onednn_work *work, const onednn_product *of);

/* From float32 x, NULL: it is pointed to later, to that of the product's type. */
onednn_primitive onednn_rounding(onednn_work *work, const onednn_product *of, const float *x);

/* Puts a copy of W, floats or of i8 whole numbers, in as weights: in the layout that oneDNN asks for, and in large pages, as blobs are when
   they are timed. */
void onednn_pack(onednn_work *work, const onednn_product *of, const void *weights, onednn_primitive *to);

/* What `first` writes lies at `data`, DNNL_MEMORY_ALLOCATE: in a room of its own, and is what `second` reads. */
void onednn_join(onednn_work *work, onednn_primitive *first, onednn_primitive *second, void *data);

dnnl_memory_t onednn_argument(const onednn_primitive *of, int argument);
void onednn_put(onednn_primitive *of, int argument, dnnl_memory_t memory);
void onednn_point(onednn_work *work, const onednn_primitive *of, int argument, const void *data);

/* Returns whether this and all before went well. */
bool onednn_run(onednn_work *work, const onednn_primitive *of);

/* Whether oneDNN uses that instruction set here. */
bool onednn_has(dnnl_cpu_isa_t isa);

/* The largest weight of i8. Products of two bytes are added in pairs: without VNNI in 16 bits, where two of 255 * 63 fit. */
int onednn_largest_weight(void);

/* The implementations of something made, which begins with its work. */
const char *onednn_implementation(const void *made);

#endif
