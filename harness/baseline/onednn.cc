// One product through oneDNN, its weights in the layout that oneDNN asks for.
#include "harness/baseline/onednn.hh"

#include <sys/mman.h>

#include <cstdio>
#include <new>

#include "harness/base/blob_memory.h"

// oneDNN runs on the OpenMP threads of libgomp, which has no header that every compiler finds.
extern "C" void omp_set_num_threads(int);

void onednn_threads(size_t threads)
{
    omp_set_num_threads(static_cast<int>(threads));
}

bool onednn_has(dnnl::cpu_isa isa)
{
    // bits, each of an extension
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
}

onednn_layer onednn_make_layer(const dnnl::inner_product_forward::primitive_desc &chosen, const dnnl::engine &engine, dnnl::memory plain,
                               float *bias)
{
    const size_t bytes = chosen.weights_desc().get_size();
    const std::shared_ptr<void> weights(memory_of_large_pages(bytes), [bytes](void *memory) {
        if (memory) {
            munmap(memory, bytes);
        }
    });
    if (!weights) {
        throw std::bad_alloc();
    }
    dnnl::memory packed(chosen.weights_desc(), engine, weights.get());
    dnnl::stream stream(engine);
    dnnl::reorder(plain, packed).execute(stream, plain, packed);
    stream.wait();
    return {dnnl::inner_product_forward(chosen),
            {{DNNL_ARG_WEIGHTS, packed},
             {DNNL_ARG_BIAS, dnnl::memory(chosen.bias_desc(), engine, bias)},
             {DNNL_ARG_SCRATCHPAD, dnnl::memory(chosen.scratchpad_desc(), engine)},
             {DNNL_ARG_SRC, dnnl::memory(chosen.src_desc(), engine, nullptr)},
             {DNNL_ARG_DST, dnnl::memory(chosen.dst_desc(), engine, nullptr)}},
            weights};
}

void onednn_failure(const std::exception &failure, const char *type, size_t tokens, char *error, size_t error_size)
{
    const auto *own = dynamic_cast<const dnnl::error *>(&failure);
    if (own && own->status == dnnl_unimplemented) {
        std::snprintf(error, error_size, "%s", "");
    } else {
        std::snprintf(error, error_size, "onednn: %s, %zu tokens: %s", type, tokens, failure.what());
    }
}
