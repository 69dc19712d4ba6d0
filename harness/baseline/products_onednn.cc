// The products of a block through oneDNN: inner products with weights in the layout that oneDNN asks for, in float32, bfloat16 and 8 bits.
#include "harness/baseline/products.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"
#include "harness/baseline/ffn.h"
#include "harness/baseline/onednn.hh"

namespace
{

using dnnl::memory;
using tag = memory::format_tag;

const char *const types[] = {"f32", "bf16", "i8", nullptr};

dnnl::engine &cpu()
{
    static dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    return engine;
}

// A primitive with its arguments.
struct bound {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
};

struct onednn_product {
    dnnl::stream stream{cpu()};
    bound product;
};

// Memory of large pages for what a description needs.
memory large_memory(const memory::desc &description)
{
    void *data = memory_of_large_pages(description.get_size());
    if (!data) {
        throw std::bad_alloc();
    }
    return {description, cpu(), data};
}

// Weights [outputs][inputs] as whole multiples of the result, which is a 127th of the largest.
float quantise(const baseline_matrix &matrix, std::vector<int8_t> *to)
{
    float largest = 0.0f;
    for (size_t i = 0; i < matrix.inputs * matrix.outputs; ++i) {
        largest = std::max(largest, std::fabs(matrix.weights[i]));
    }
    const float unit = largest / 127.0f;
    to->resize(matrix.inputs * matrix.outputs);
    for (size_t i = 0; i < to->size(); ++i) {
        (*to)[i] = static_cast<int8_t>(std::lrint(matrix.weights[i] / unit));
    }
    return unit;
}

// The layouts of one matrix' weights that were made before: several numbers of tokens often ask for the same.
std::map<std::pair<const float *, std::string>, std::vector<memory>> packed_before;

memory packed(const baseline_matrix &matrix, const std::string &type, const memory::desc &wanted, const std::vector<int8_t> &whole)
{
    std::vector<memory> &known = packed_before[{matrix.weights, type}];
    for (const memory &one : known) {
        if (one.get_desc() == wanted) {
            return one;
        }
    }
    const auto n = static_cast<memory::dim>(matrix.outputs), k = static_cast<memory::dim>(matrix.inputs);
    memory plain = type == "i8" ? memory({{n, k}, memory::data_type::s8, tag::ab}, cpu(), const_cast<int8_t *>(whole.data()))
                                : memory({{n, k}, memory::data_type::f32, tag::ab}, cpu(), const_cast<float *>(matrix.weights));
    memory to = large_memory(wanted);
    dnnl::stream stream(cpu());
    dnnl::reorder(plain, to).execute(stream, plain, to);
    stream.wait();
    known.push_back(to);
    return to;
}

void *make_product(const baseline_matrix *matrix, const char *type, size_t tokens, const float *x, char *error, size_t error_size)
{
    onednn_threads(1);
    try {
        const bool i8 = std::strcmp(type, "i8") == 0, bf16 = std::strcmp(type, "bf16") == 0;
        const auto m = static_cast<memory::dim>(tokens), n = static_cast<memory::dim>(matrix->outputs),
                   k = static_cast<memory::dim>(matrix->inputs);
        const auto from = i8 ? memory::data_type::u8 : bf16 ? memory::data_type::bf16 : memory::data_type::f32;
        const auto weights = i8 ? memory::data_type::s8 : from;
        std::vector<int8_t> whole;
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        if (i8) {
            attributes.set_output_scales(0, {quantise(*matrix, &whole) / 255.0f});
        }
        const dnnl::inner_product_forward::desc description(dnnl::prop_kind::forward_inference, memory::desc({m, k}, from, tag::nc),
                                                            memory::desc({n, k}, weights, tag::any),
                                                            memory::desc({m, n}, memory::data_type::f32, tag::nc));
        const dnnl::inner_product_forward::primitive_desc chosen(description, attributes, cpu());
        auto self = std::make_unique<onednn_product>();
        memory source(chosen.src_desc(), cpu());
        if (i8) {
            auto *to = static_cast<uint8_t *>(source.get_data_handle());
            for (size_t i = 0; i < tokens * matrix->inputs; ++i) {
                to[i] = static_cast<uint8_t>(std::lrint(x[i] * 255.0f));
            }
        } else {
            memory plain({{m, k}, memory::data_type::f32, tag::nc}, cpu(), const_cast<float *>(x));
            dnnl::reorder(plain, source).execute(self->stream, plain, source);
            self->stream.wait();
        }
        self->product = {dnnl::inner_product_forward(chosen),
                         {{DNNL_ARG_SRC, source},
                          {DNNL_ARG_WEIGHTS, packed(*matrix, type, chosen.weights_desc(), whole)},
                          {DNNL_ARG_SCRATCHPAD, memory(chosen.scratchpad_desc(), cpu())},
                          {DNNL_ARG_DST, memory(chosen.dst_desc(), cpu(), nullptr)}}};
        return self.release();
    } catch (const dnnl::error &failure) {
        *error = '\0'; // bf16 on a CPU without AVX-512
        if (failure.status != dnnl_unimplemented) {
            std::snprintf(error, error_size, "onednn: %s, %zu tokens: %s", type, tokens, failure.what());
        }
        return nullptr;
    } catch (const std::exception &failure) {
        std::snprintf(error, error_size, "onednn: %s, %zu tokens: %s", type, tokens, failure.what());
        return nullptr;
    }
}

bool run_product(void *product, float *y)
{
    auto *self = static_cast<onednn_product *>(product);
    try {
        self->product.arguments.at(DNNL_ARG_DST).set_data_handle(y);
        self->product.primitive.execute(self->stream, self->product.arguments);
        self->stream.wait();
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

// Scores and sums of one head, or for one token of a group of heads; its data are put in for every call.
struct onednn_attention {
    baseline_attention of;
    dnnl::stream stream{cpu()};
    bound scores, sums;
    memory score;
};

// c [m][n] = a [m][k] b [k][n], each with the strides of its rows and columns.
bound make_matmul(memory::dim m, memory::dim n, memory::dim k, const memory::dims &a, const memory::dims &b, const memory::dims &c)
{
    const memory::data_type f32 = memory::data_type::f32;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc chosen({memory::desc({m, k}, f32, a), memory::desc({k, n}, f32, b), memory::desc({m, n}, f32, c)},
                                              attributes, cpu());
    return {dnnl::matmul(chosen),
            {{DNNL_ARG_SRC, memory(chosen.src_desc(), cpu(), nullptr)},
             {DNNL_ARG_WEIGHTS, memory(chosen.weights_desc(), cpu(), nullptr)},
             {DNNL_ARG_SCRATCHPAD, memory(chosen.scratchpad_desc(), cpu())},
             {DNNL_ARG_DST, memory(chosen.dst_desc(), cpu(), nullptr)}}};
}

void *make_attention(const baseline_attention *of, char *error, size_t error_size)
{
    onednn_threads(1);
    try {
        const auto width = static_cast<memory::dim>(of->width), e = static_cast<memory::dim>(of->kv_heads) * width;
        const auto end = static_cast<memory::dim>(of->position + of->tokens);
        const bool alone = of->tokens == 1;
        const auto rows = static_cast<memory::dim>(alone ? of->heads / of->kv_heads : of->tokens);
        const auto step = alone ? width : static_cast<memory::dim>(of->heads) * width;
        auto self = std::make_unique<onednn_attention>();
        self->of = *of;
        self->scores = make_matmul(rows, end, width, {step, 1}, {1, e}, {end, 1});
        self->sums = make_matmul(rows, width, end, {end, 1}, {e, 1}, {step, 1});
        self->score = memory(self->scores.arguments.at(DNNL_ARG_DST).get_desc(), cpu());
        self->scores.arguments.at(DNNL_ARG_DST) = self->sums.arguments.at(DNNL_ARG_SRC) = self->score;
        return self.release();
    } catch (const std::exception &failure) {
        std::snprintf(error, error_size, "onednn: attention of %zu tokens: %s", of->tokens, failure.what());
        return nullptr;
    }
}

bool run_attention(void *attention, float *y)
{
    auto *self = static_cast<onednn_attention *>(attention);
    const baseline_attention &of = self->of;
    const size_t end = of.position + of.tokens, e = of.kv_heads * of.width, group = of.heads / of.kv_heads;
    const bool alone = of.tokens == 1;
    try {
        for (size_t layer = 0; layer < of.layers; ++layer) {
            for (size_t head = 0; head < of.heads; head += alone ? group : 1) {
                const size_t at = layer * end * e + head / group * of.width;
                self->scores.arguments.at(DNNL_ARG_SRC).set_data_handle(const_cast<float *>(of.q + head * of.width));
                self->scores.arguments.at(DNNL_ARG_WEIGHTS).set_data_handle(const_cast<float *>(of.keys + at));
                self->scores.primitive.execute(self->stream, self->scores.arguments);
                self->stream.wait();
                baseline_softmax(&of, static_cast<float *>(self->score.get_data_handle()));
                self->sums.arguments.at(DNNL_ARG_WEIGHTS).set_data_handle(const_cast<float *>(of.values + at));
                self->sums.arguments.at(DNNL_ARG_DST).set_data_handle(y + head * of.width);
                self->sums.primitive.execute(self->stream, self->sums.arguments);
                self->stream.wait();
            }
        }
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

void describe(char *text, size_t size)
{
    baseline_onednn.describe(text, size);
}

} // namespace

const baseline_product_library baseline_products_onednn = {"onednn",    "onednn_version", types,         make_product,
                                                           run_product, make_attention,   run_attention, describe};
