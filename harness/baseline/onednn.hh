// What the dense FFNs through oneDNN share: one product with everything that is made once, and failures as one line.
#ifndef LOOKUPC_BASELINE_ONEDNN_HH
#define LOOKUPC_BASELINE_ONEDNN_HH

#include <cstddef>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

// One product y = x Wᵀ + bias with its arguments; source and destination are put in later.
struct onednn_layer {
    dnnl::inner_product_forward primitive;
    std::unordered_map<int, dnnl::memory> arguments;
    std::shared_ptr<void> weights; // in large pages, as blobs are when they are timed
};

// The product that `chosen` describes, with a copy of the weights `plain` in the layout that it asks for.
onednn_layer onednn_make_layer(const dnnl::inner_product_forward::primitive_desc &chosen, const dnnl::engine &engine, dnnl::memory plain,
                               float *bias);

// The line about a failure to make products for so many tokens; an empty one where oneDNN has no such product for this CPU.
void onednn_failure(const std::exception &failure, const char *type, size_t tokens, char *error, size_t error_size);

// Whether oneDNN uses that instruction set here.
bool onednn_has(dnnl::cpu_isa isa);

// How many threads all products of this process have.
void onednn_threads(size_t threads);

#endif
