// The dense FFN through oneDNN in 8 bits, as one would deploy it: x rounded to u8 by one scale a call, found from x itself; weights rounded
// to s8 by one scale an output; the hidden layer leaves the first product with GELU as u8, by a scale that was calibrated before.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "harness/baseline/ffn.h"
#include "harness/baseline/onednn.hh"

namespace
{

using dnnl::memory;
using tag = memory::format_tag;

constexpr float zero_of_x = 128.0f; // the byte that stands for 0
constexpr float levels = 255.0f;    // of a byte

// Products of two bytes are added in pairs: without VNNI in 16 bits, where two of 255 * 63 fit.
int largest_weight()
{
    return onednn_has(dnnl::cpu_isa::avx512_core_vnni) || onednn_has(dnnl::cpu_isa::avx2_vnni) ? 127 : 63;
}

// Weights [outputs][inputs] as integers in units of their output.
struct rounded_weights {
    std::vector<int8_t> integers;
    std::vector<float> unit, sum; // of an output: the unit, the sum of its integers
};

rounded_weights round_weights(const float *weights, size_t inputs, size_t outputs)
{
    rounded_weights to = {std::vector<int8_t>(inputs * outputs), std::vector<float>(outputs), std::vector<float>(outputs)};
    for (size_t output = 0; output < outputs; ++output) {
        const float *row = weights + output * inputs;
        const float largest = baseline_largest(row, inputs, 1),
                    unit = largest > 0.0f ? largest / static_cast<float>(largest_weight()) : 1.0f;
        int sum = 0;
        for (size_t i = 0; i < inputs; ++i) {
            const auto integer = static_cast<int8_t>(std::lrint(row[i] / unit));
            to.integers[output * inputs + i] = integer;
            sum += integer;
        }
        to.unit[output] = unit;
        to.sum[output] = static_cast<float>(sum);
    }
    return to;
}

// oneDNN computes (sum of products + bias) * scale, both by output.
struct i8_ffn {
    size_t tokens, d, threads;
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    onednn_layer first, second;
    memory x, hidden, scale_now;
    std::vector<float> scale, bias, offset; // of the first product in units of x: scale * unit, bias / unit + offset
    std::vector<float> bias_now, second_bias;
};

onednn_layer make_layer(const i8_ffn &ffn, const dnnl::primitive_attr &attributes, memory::data_type result, size_t in, size_t out,
                        rounded_weights *weights, float *bias)
{
    const auto m = static_cast<memory::dim>(ffn.tokens), k = static_cast<memory::dim>(in), n = static_cast<memory::dim>(out);
    const dnnl::inner_product_forward::desc description(
        dnnl::prop_kind::forward_inference, memory::desc({m, k}, memory::data_type::u8, tag::nc),
        memory::desc({n, k}, memory::data_type::s8, tag::any), memory::desc({n}, memory::data_type::f32, tag::x),
        memory::desc({m, n}, result, tag::nc));
    const dnnl::inner_product_forward::primitive_desc chosen(description, attributes, ffn.engine);
    return onednn_make_layer(chosen, ffn.engine, memory({{n, k}, memory::data_type::s8, tag::oi}, ffn.engine, weights->integers.data()),
                             bias);
}

// z = unit_of_x * unit * (Σ (byte - 128) * integer) + b, with unit_of_x known at the time of the call.
void make_first(i8_ffn *ffn, const baseline_weights *weights, float unit_of_hidden, float zero_of_hidden)
{
    const auto n = static_cast<memory::dim>(weights->hidden);
    rounded_weights rounded = round_weights(weights->w1, weights->d, weights->hidden);
    dnnl::post_ops operations;
    operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_gelu_tanh, 0.0f, 0.0f);
    operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_linear, 1.0f / unit_of_hidden, zero_of_hidden);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_post_ops(operations);
    attributes.set_output_scales(1 << 1, {DNNL_RUNTIME_F32_VAL});
    ffn->bias_now.resize(weights->hidden);
    ffn->first = make_layer(*ffn, attributes, memory::data_type::u8, weights->d, weights->hidden, &rounded, ffn->bias_now.data());
    ffn->scale_now = memory({{n}, memory::data_type::f32, tag::x}, ffn->engine);
    ffn->first.arguments[DNNL_ARG_ATTR_OUTPUT_SCALES] = ffn->scale_now;
    ffn->scale = rounded.unit;
    for (size_t i = 0; i < weights->hidden; ++i) {
        ffn->bias.push_back(weights->b1[i] / rounded.unit[i]);
        ffn->offset.push_back(-zero_of_x * rounded.sum[i]);
    }
}

// y = unit_of_hidden * unit * (Σ (byte - zero_of_hidden) * integer) + b
void make_second(i8_ffn *ffn, const baseline_weights *weights, float unit_of_hidden, float zero_of_hidden)
{
    rounded_weights rounded = round_weights(weights->w2, weights->hidden, weights->d_out);
    std::vector<float> scale;
    for (size_t i = 0; i < weights->d_out; ++i) {
        scale.push_back(unit_of_hidden * rounded.unit[i]);
        ffn->second_bias.push_back(weights->b2[i] / scale[i] - zero_of_hidden * rounded.sum[i]);
    }
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_output_scales(1 << 1, scale);
    ffn->second = make_layer(*ffn, attributes, memory::data_type::f32, weights->hidden, weights->d_out, &rounded, ffn->second_bias.data());
}

void *create(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    onednn_threads(threads);
    try {
        auto ffn = std::make_unique<i8_ffn>();
        ffn->tokens = tokens;
        ffn->d = weights->d;
        ffn->threads = threads;
        const float unit_of_hidden = (weights->high - weights->low) / levels, zero_of_hidden = std::round(-weights->low / unit_of_hidden);
        make_first(ffn.get(), weights, unit_of_hidden, zero_of_hidden);
        make_second(ffn.get(), weights, unit_of_hidden, zero_of_hidden);
        ffn->x = memory(ffn->first.arguments.at(DNNL_ARG_SRC).get_desc(), ffn->engine);
        ffn->hidden = memory(ffn->first.arguments.at(DNNL_ARG_DST).get_desc(), ffn->engine);
        ffn->first.arguments.at(DNNL_ARG_SRC) = ffn->x;
        ffn->first.arguments.at(DNNL_ARG_DST) = ffn->hidden;
        ffn->second.arguments.at(DNNL_ARG_SRC) = ffn->hidden;
        return ffn.release();
    } catch (const std::exception &failure) {
        onednn_failure(failure, "i8", tokens, error, error_size);
        return nullptr;
    }
}

bool run(void *opaque, const float *x, float *y)
{
    auto *ffn = static_cast<i8_ffn *>(opaque);
    try {
        const size_t count = ffn->tokens * ffn->d;
        const float largest = baseline_largest(x, count, ffn->threads), unit = largest > 0.0f ? largest / 127.0f : 1.0f;
        baseline_bytes(x, count, unit, static_cast<uint8_t *>(ffn->x.get_data_handle()), ffn->threads);
        baseline_scales(ffn->scale.data(), ffn->bias.data(), ffn->offset.data(), ffn->scale.size(), unit,
                        static_cast<float *>(ffn->scale_now.get_data_handle()), ffn->bias_now.data());
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
    delete static_cast<i8_ffn *>(opaque);
}

void describe(char *text, size_t size)
{
    std::snprintf(text, size, "%s", largest_weight() == 127 ? "vnni" : "7-bit weights");
}

} // namespace

const baseline_library baseline_onednn_i8 = {"onednn", "i8", "onednn_i8", create, run, destroy, describe, largest_weight};
