// What other libraries do, beside compiled code: dense FFNs, and products and attention of blocks.
#ifndef LOOKUPC_MEASURE_BASELINES_HH
#define LOOKUPC_MEASURE_BASELINES_HH

#include "harness/measure/rows.hh"

// Adds the calls of the job, and to the context what the libraries chose and how far they are off.
//
// dense: names of libraries with types; they take `batches` tokens of the memory "uniform", d, baseline_hidden and d_out wide.
void measure_add_dense(const measure_object &job, const measure_timing_job &timing, const measure_workshop &shop,
                       std::vector<measure_call> *calls);

// product_calls { name, library, type, tokens } of all `products` { inputs, outputs }; attention_calls { name, library, tokens, position }
// of heads, kv_heads, width, layers, causal.
void measure_add_products(const measure_object &job, const measure_timing_job &timing, const measure_workshop &shop,
                          std::vector<measure_call> *calls);

#endif
