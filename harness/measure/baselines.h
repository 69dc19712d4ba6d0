/* What other libraries do, beside compiled code: dense FFNs, and products and attention of blocks. */
#ifndef LOOKUPC_MEASURE_BASELINES_H
#define LOOKUPC_MEASURE_BASELINES_H

#include "harness/measure/buffers.h"
#include "harness/measure/timing.h"

/* Add the calls of the job, and notes of what the libraries chose and how far they are off.

   dense: names of libraries with types; they take `batches` tokens of the memory "uniform", d, baseline_hidden and d_out wide. */
void baselines_add_dense(const buffers *memory, timing *to);

/* product_calls { name, library, type, tokens } of all `products` { inputs, outputs }; attention_calls { name, library, tokens, position }
   of heads, kv_heads, width, layers, causal. */
void baselines_add_products(const buffers *memory, timing *to);

#endif
