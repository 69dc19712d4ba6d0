// The dense FFN through oneDNN in float32 and bfloat16: two inner products, GELU fused into the first.
#include <cstdio>
#include <cstring>
#include <memory>

#include "harness/baseline/ffn.h"
#include "harness/baseline/onednn.hh"

namespace
{

using dnnl::memory;
using tag = memory::format_tag;

struct onednn_ffn {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    onednn_layer first, second;
    memory hidden;
    bool round = false;     // x becomes bfloat16 first
    memory plain, rounded;  // x
    dnnl::reorder rounding; // from one to the other
};

// From factors of the type `factors` to a result of the type `result`; weight [out][in] are floats.
onednn_layer make_layer(const onednn_ffn &ffn, memory::data_type factors, memory::data_type result, size_t tokens, size_t in, size_t out,
                        float *weight, float *bias, bool gelu)
{
    const auto m = static_cast<memory::dim>(tokens), k = static_cast<memory::dim>(in), n = static_cast<memory::dim>(out);
    const memory::data_type f32 = memory::data_type::f32;
    const dnnl::inner_product_forward::desc description(dnnl::prop_kind::forward_inference, memory::desc({m, k}, factors, tag::nc),
                                                        memory::desc({n, k}, factors, tag::any), memory::desc({n}, f32, tag::x),
                                                        memory::desc({m, n}, result, tag::nc));
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (gelu) {
        dnnl::post_ops operations;
        operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_gelu_tanh, 0.0f, 0.0f);
        attributes.set_post_ops(operations);
    }
    const dnnl::inner_product_forward::primitive_desc chosen(description, attributes, ffn.engine);
    return onednn_make_layer(chosen, ffn.engine, memory({{n, k}, f32, tag::oi}, ffn.engine, weight), bias);
}

void *create(memory::data_type type, const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    const memory::data_type f32 = memory::data_type::f32;
    onednn_threads(threads);
    try {
        auto ffn = std::make_unique<onednn_ffn>();
        ffn->first = make_layer(*ffn, type, type, tokens, weights->d, weights->hidden, weights->w1, weights->b1, true);
        ffn->second = make_layer(*ffn, type, f32, tokens, weights->hidden, weights->d_out, weights->w2, weights->b2, false);
        ffn->hidden = memory(ffn->first.arguments.at(DNNL_ARG_DST).get_desc(), ffn->engine);
        ffn->first.arguments.at(DNNL_ARG_DST) = ffn->hidden;
        ffn->second.arguments.at(DNNL_ARG_SRC) = ffn->hidden;
        ffn->round = type != f32;
        if (ffn->round) {
            const auto m = static_cast<memory::dim>(tokens), k = static_cast<memory::dim>(weights->d);
            ffn->plain = memory({{m, k}, f32, tag::nc}, ffn->engine, nullptr);
            ffn->rounded = memory({{m, k}, type, tag::nc}, ffn->engine);
            ffn->rounding = dnnl::reorder(ffn->plain, ffn->rounded);
            ffn->first.arguments.at(DNNL_ARG_SRC) = ffn->rounded;
        }
        return ffn.release();
    } catch (const std::exception &failure) {
        onednn_failure(failure, type == f32 ? "f32" : "bf16", tokens, error, error_size);
        return nullptr;
    }
}

void *create_f32(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    return create(memory::data_type::f32, weights, tokens, threads, error, error_size);
}

void *create_bf16(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    return create(memory::data_type::bf16, weights, tokens, threads, error, error_size);
}

bool run(void *opaque, const float *x, float *y)
{
    auto *ffn = static_cast<onednn_ffn *>(opaque);
    try {
        if (ffn->round) {
            ffn->plain.set_data_handle(const_cast<float *>(x));
            ffn->rounding.execute(ffn->stream, ffn->plain, ffn->rounded);
        } else {
            ffn->first.arguments.at(DNNL_ARG_SRC).set_data_handle(const_cast<float *>(x));
        }
        ffn->second.arguments.at(DNNL_ARG_DST).set_data_handle(y);
        ffn->first.primitive.execute(ffn->stream, ffn->first.arguments);
        ffn->second.primitive.execute(ffn->stream, ffn->second.arguments);
        ffn->stream.wait();
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

void destroy(void *opaque)
{
    delete static_cast<onednn_ffn *>(opaque);
}

void describe(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    std::snprintf(text, size, "%d.%d.%d", version->major, version->minor, version->patch);
}

void describe_bf16(char *text, size_t size)
{
    std::snprintf(text, size, "%s", onednn_has(dnnl::cpu_isa::avx512_core_bf16) ? "native" : "emulated");
}

} // namespace

const baseline_library baseline_onednn = {"onednn", "f32", "onednn_version", create_f32, run, destroy, describe, nullptr};
const baseline_library baseline_onednn_bf16 = {"onednn", "bf16", "onednn_bf16", create_bf16, run, destroy, describe_bf16, nullptr};
