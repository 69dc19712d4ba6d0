// The dense FFN through oneDNN: two inner products, GELU fused into the first, weights in the layout that oneDNN asks for.
#include "harness/baseline/ffn.h"

#include <cstdio>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

// oneDNN runs on the OpenMP threads of libgomp, which has no header that every compiler finds.
extern "C" void omp_set_num_threads(int);

namespace
{

using dnnl::memory;
using tag = memory::format_tag;

// One product y = x Wᵀ + bias, with everything that is made once.
struct layer {
    dnnl::inner_product_forward primitive;
    std::unordered_map<int, memory> arguments;
};

struct onednn_ffn {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    layer first, second;
    memory hidden;
};

layer make_layer(const onednn_ffn &ffn, size_t tokens, size_t in, size_t out, float *weight, float *bias, bool gelu)
{
    const auto m = static_cast<memory::dim>(tokens), k = static_cast<memory::dim>(in), n = static_cast<memory::dim>(out);
    const memory::data_type f32 = memory::data_type::f32;
    const memory::desc any({n, k}, f32, tag::any);
    const dnnl::inner_product_forward::desc description(dnnl::prop_kind::forward_inference, memory::desc({m, k}, f32, tag::nc), any,
                                                        memory::desc({n}, f32, tag::x), memory::desc({m, n}, f32, tag::nc));
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (gelu) {
        dnnl::post_ops operations;
        operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_gelu_tanh, 0.0f, 0.0f);
        attributes.set_post_ops(operations);
    }
    const dnnl::inner_product_forward::primitive_desc chosen(description, attributes, ffn.engine);

    memory plain({{n, k}, f32, tag::oi}, ffn.engine, weight);
    memory packed(chosen.weights_desc(), ffn.engine);
    dnnl::stream stream(ffn.engine);
    dnnl::reorder(plain, packed).execute(stream, plain, packed);
    stream.wait();
    return {dnnl::inner_product_forward(chosen),
            {{DNNL_ARG_WEIGHTS, packed},
             {DNNL_ARG_BIAS, memory(chosen.bias_desc(), ffn.engine, bias)},
             {DNNL_ARG_SCRATCHPAD, memory(chosen.scratchpad_desc(), ffn.engine)},
             {DNNL_ARG_SRC, memory(chosen.src_desc(), ffn.engine, nullptr)},
             {DNNL_ARG_DST, memory(chosen.dst_desc(), ffn.engine, nullptr)}}};
}

void *onednn_create(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    omp_set_num_threads(static_cast<int>(threads));
    try {
        auto ffn = std::make_unique<onednn_ffn>();
        ffn->first = make_layer(*ffn, tokens, weights->d, weights->hidden, weights->w1, weights->b1, true);
        ffn->second = make_layer(*ffn, tokens, weights->hidden, weights->d_out, weights->w2, weights->b2, false);
        ffn->hidden = memory(ffn->first.arguments.at(DNNL_ARG_DST).get_desc(), ffn->engine);
        ffn->first.arguments.at(DNNL_ARG_DST) = ffn->hidden;
        ffn->second.arguments.at(DNNL_ARG_SRC) = ffn->hidden;
        return ffn.release();
    } catch (const std::exception &failure) {
        std::snprintf(error, error_size, "onednn: %zu tokens: %s", tokens, failure.what());
        return nullptr;
    }
}

bool onednn_run(void *opaque, const float *x, float *y)
{
    auto *ffn = static_cast<onednn_ffn *>(opaque);
    try {
        ffn->first.arguments.at(DNNL_ARG_SRC).set_data_handle(const_cast<float *>(x));
        ffn->second.arguments.at(DNNL_ARG_DST).set_data_handle(y);
        ffn->first.primitive.execute(ffn->stream, ffn->first.arguments);
        ffn->second.primitive.execute(ffn->stream, ffn->second.arguments);
        ffn->stream.wait();
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

void onednn_destroy(void *opaque)
{
    delete static_cast<onednn_ffn *>(opaque);
}

void onednn_describe(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    std::snprintf(text, size, "%d.%d.%d", version->major, version->minor, version->patch);
}

} // namespace

const baseline_library baseline_onednn = {"onednn", "onednn_version", onednn_create, onednn_run, onednn_destroy, onednn_describe};
