// Times compiled blocks of transformers, reading what they read, and the same products and attention through other libraries.
#include "harness/measure/transformer.hh"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gen/weights/random.h"
#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"
#include "harness/baseline/products.h"

namespace
{

using bind_function = int(const void *blob, size_t bytes, void *weights);
using prefill_function = int(const void *weights, void *cache, const float *x, float *y, size_t first, size_t tokens, void *scratch);
using encode_function = int(const void *weights, void *cache, const float *x, float *y, size_t tokens, void *scratch);
using encode_batch_function = int(const void *weights, void *cache, const float *x, float *y, const size_t *offsets, size_t sequences,
                                  void *scratch);

const baseline_product_library *const libraries[] = {&baseline_products_openblas, &baseline_products_onednn};

void *memory_or_fail(size_t bytes)
{
    void *memory = memory_of_large_pages(bytes);
    if (!memory) {
        measure_fail("out of memory for %zu bytes", bytes);
    }
    return memory;
}

// So many random numbers. Those of large memory repeat: only their making would take long.
float *random_numbers(size_t count, uint64_t seed, double mean, double deviation)
{
    constexpr size_t period = (1 << 20) - 7;
    auto *numbers = static_cast<float *>(memory_or_fail(count * sizeof(float)));
    random_state random = random_seed(seed);
    random_fill(&random, numbers, std::min(count, period), mean, deviation);
    for (size_t done = period; done < count; done += period) {
        std::memcpy(numbers + done, numbers, std::min(period, count - done) * sizeof(float));
    }
    return numbers;
}

// Lets so many callers, numbered from 0, call at a time; whether all calls went well.
template <class call> bool all_together(size_t callers, const call &one)
{
    if (callers == 1) {
        return one(size_t{0});
    }
    bool good = true;
#pragma omp parallel for num_threads(callers) schedule(static, 1) reduction(&& : good)
    for (size_t caller = 0; caller < callers; ++caller) {
        good = one(caller) && good;
    }
    return good;
}

// What a caller has for itself; `scratch` is enough for all blocks.
struct caller_memory {
    void *cache, *scratch;
    float *y;
};

// Blocks that can be called.
struct loaded_transformer {
    const measure_transformer *job;
    files_mapping blob;
    void *weights;
    prefill_function *prefill; // one of the three
    encode_function *encode;
    encode_batch_function *encode_batch;
    // `offsets`: of sequences, for encode_batch
    bool run(const caller_memory &of, const float *x, size_t position, size_t tokens, const std::vector<size_t> &offsets) const
    {
        if (prefill) {
            return prefill(weights, of.cache, x, of.y, position, tokens, of.scratch) == 0;
        }
        return (encode ? encode(weights, of.cache, x, of.y, tokens, of.scratch)
                       : encode_batch(weights, of.cache, x, of.y, offsets.data(), offsets.size() - 1, of.scratch)) == 0;
    }
};

// Those of sequences of `sequence` tokens, the last one of fewer.
std::vector<size_t> offsets_of(size_t tokens, size_t sequence)
{
    std::vector<size_t> offsets;
    for (size_t at = 0; sequence > 0 && at < tokens; at += sequence) {
        offsets.push_back(at);
    }
    offsets.push_back(tokens);
    return offsets;
}

loaded_transformer load(const measure_transformer &job, const measure_transformer_job &of, std::map<std::string, files_mapping> *blobs)
{
    char error[512];
    const auto [blob, first] = blobs->try_emplace(job.blob);
    if (first && !blob_map(job.blob, &blob->second, error, sizeof(error))) {
        measure_fail("%s", error);
    }
    void *library = dlopen(job.library, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        measure_fail("%s: %s", job.library, dlerror());
    }
    auto *bind = reinterpret_cast<bind_function *>(dlsym(library, job.bind));
    void *call = dlsym(library, job.call);
    loaded_transformer loaded = {&job,
                                 blob->second,
                                 aligned_memory(job.weights_struct_bytes),
                                 of.causal ? reinterpret_cast<prefill_function *>(call) : nullptr,
                                 of.causal || of.sequence ? nullptr : reinterpret_cast<encode_function *>(call),
                                 of.sequence ? reinterpret_cast<encode_batch_function *>(call) : nullptr};
    if (!bind || !call || !loaded.weights) {
        measure_fail("%s: no function %s or %s", job.library, job.bind, job.call);
    }
    const int status = bind(loaded.blob.data, loaded.blob.bytes, loaded.weights);
    if (status != 0) {
        measure_fail("%s: refused by %s with code %d", job.blob, job.bind, status);
    }
    return loaded;
}

const baseline_product_library *find_library(const char *name)
{
    for (const baseline_product_library *library : libraries) {
        if (std::strcmp(library->name, name) == 0) {
            return library;
        }
    }
    measure_fail("%.60s: must be openblas or onednn", name);
}

// Reads memory in four streams side by side, to which it gives more than to one.
void read_streams(const void *memory, size_t bytes)
{
    constexpr size_t streams = 4, piece = 512;
    const size_t each = bytes / streams / piece * piece;
    for (size_t at = 0; at < each; at += piece) {
        for (size_t stream = 0; stream < streams; ++stream) {
            limits_read(static_cast<const unsigned char *>(memory) + stream * each + at, piece);
        }
    }
}

// The products of the baselines, each checked when it is made.
class baseline_products
{
  public:
    explicit baseline_products(const measure_transformer_job &job) : callers_(job.timing.threads)
    {
        size_t inputs = 1, outputs = 1, tokens = 1;
        for (size_t i = 0; i < job.product_count; ++i) {
            const measure_product &p = job.products[i];
            matrices_.push_back(
                {p.inputs, p.outputs, random_numbers(p.inputs * p.outputs, job.timing.seed + i, 0.0, 1.0 / static_cast<double>(p.inputs))});
            inputs = std::max(inputs, p.inputs);
            outputs = std::max(outputs, p.outputs);
        }
        for (size_t i = 0; i < job.product_call_count; ++i) {
            tokens = std::max(tokens, job.product_calls[i].tokens);
        }
        x_ = static_cast<float *>(memory_or_fail(tokens * inputs * sizeof(float)));
        y_step_ = tokens * outputs;
        y_ = static_cast<float *>(memory_or_fail(callers_ * y_step_ * sizeof(float)));
        random_state random = random_seed(job.timing.seed);
        for (size_t i = 0; i < tokens * inputs; ++i) {
            x_[i] = static_cast<float>(random_uniform(&random));
        }
    }

    // Adds the call, and its largest relative error to the context. Of types narrower than float32 a library may have no product for this
    // CPU, or one that overflows: those are left out. Each caller has products of its own.
    void add(const measure_products_call &of, std::vector<measure_call> *calls)
    {
        const baseline_product_library *library = find_library(of.library);
        std::vector<void *> products;
        double worst = 0.0;
        for (size_t i = 0; i < callers_ * matrices_.size(); ++i) {
            char error[512];
            void *made = product(library, of, matrices_[i % matrices_.size()], &worst, error, sizeof(error));
            if (!made && std::strcmp(of.type, "f32") != 0) {
                if (*error != '\0') {
                    std::fprintf(stderr, "lookupc-measure: %s: left out\n", error);
                }
                return;
            }
            if (!made) {
                measure_fail("%s", error);
            }
            products.push_back(made);
        }
        char text[32];
        std::snprintf(text, sizeof(text), "%.9g", worst);
        benchmark::AddCustomContext(of.name, text);
        const auto call = [=, y = y_, y_step = y_step_, count = matrices_.size()](size_t caller) {
            const auto first = products.begin() + static_cast<ptrdiff_t>(caller * count);
            return std::all_of(first, first + static_cast<ptrdiff_t>(count),
                               [=](void *one) { return library->multiply(one, y + caller * y_step); });
        };
        calls->push_back({of.name, callers_, false, [=, callers = callers_] { return all_together(callers, call); }});
    }

  private:
    // A product that is right, with *worst raised to its error, or nullptr with one line in error.
    void *product(const baseline_product_library *library, const measure_products_call &of, const baseline_matrix &matrix, double *worst,
                  char *error, size_t error_size)
    {
        void *made = library->product(&matrix, of.type, of.tokens, x_, error, error_size);
        if (!made) {
            return nullptr;
        }
        const bool ran = library->multiply(made, y_);
        const double off = baseline_product_error(&matrix, of.tokens, x_, y_), most = baseline_product_tolerance(of.type);
        if (ran && off <= most) {
            *worst = std::max(*worst, off);
            return made;
        }
        std::snprintf(error, error_size, "%s: %s, %zu tokens: relative error %.2g of a product: must be at most %g", library->name, of.type,
                      of.tokens, off, most);
        return nullptr;
    }

    size_t callers_, y_step_;
    std::vector<baseline_matrix> matrices_;
    float *x_, *y_;
};

// Attention of the baselines, checked when it is made.
measure_call attention_call(const measure_transformer_job &job, const measure_attention_call &of, const float *q, const float *numbers,
                            const std::vector<caller_memory> &memory)
{
    constexpr double tolerance = 1e-4;
    const baseline_product_library *library = find_library(of.library);
    const size_t set = (of.position + of.tokens) * job.kv_heads * job.width;
    const baseline_attention attention = {job.heads,  job.kv_heads, job.width, of.tokens, of.position,
                                          job.layers, job.causal,   q,         numbers,   numbers + job.layers * set};
    std::vector<void *> made;
    for (const caller_memory &own : memory) {
        char error[512];
        made.push_back(library->attention(&attention, error, sizeof(error)));
        if (!made.back()) {
            measure_fail("%s", error);
        }
        const bool ran = library->attend(made.back(), own.y);
        const double off = baseline_attention_error(&attention, own.y);
        if (!ran || !(off <= tolerance)) {
            measure_fail("%s: attention of %zu tokens: relative error %.2g: must be at most %g", library->name, of.tokens, off, tolerance);
        }
    }
    return {of.name, memory.size(), false,
            [=] { return all_together(memory.size(), [&](size_t caller) { return library->attend(made[caller], memory[caller].y); }); }};
}

} // namespace

void measure_time_transformer(measure_reader *reader, const json_t *root, const char *out)
{
    measure_transformer_job job;
    if (!measure_transformer_job_read(reader, root, &job)) {
        measure_fail("%s", reader->error);
    }
    if (job.timing.limits) {
        measure_add_limits(job.timing);
    }

    // Everything that the calls use is made and touched before the first one is timed. It lives until the process ends.
    size_t tokens = std::max<size_t>(1, job.filled), values = 1;
    for (size_t i = 0; i < job.call_count; ++i) {
        tokens = std::max(tokens, job.calls[i].tokens);
    }
    for (size_t i = 0; i < job.attention_call_count; ++i) {
        const measure_attention_call &of = job.attention_calls[i];
        values = std::max(values, 2 * job.layers * (of.position + of.tokens) * job.kv_heads * job.width);
        tokens = std::max(tokens, of.tokens);
    }
    // Calls take turns in inputs: rows of tables that the same ones take would stay in the caches.
    constexpr size_t turns = 256;
    const float *x = random_numbers((tokens + turns) * job.d, job.timing.seed, 0.0, 1.0);
    size_t scratch_bytes = 0;
    for (size_t i = 0; i < job.transformer_count; ++i) {
        scratch_bytes = std::max(scratch_bytes, job.transformers[i].scratch_bytes);
    }
    const size_t callers = job.timing.threads;
    std::vector<caller_memory> memory;
    for (size_t i = 0; i < callers; ++i) {
        memory.push_back({memory_or_fail(job.cache_bytes), memory_or_fail(scratch_bytes),
                          static_cast<float *>(memory_or_fail(tokens * std::max(job.d, job.heads * job.width) * sizeof(float)))});
    }

    std::map<std::string, files_mapping> blobs;
    std::vector<loaded_transformer> transformers;
    for (size_t i = 0; i < job.transformer_count; ++i) {
        transformers.push_back(load(job.transformers[i], job, &blobs));
    }
    for (const caller_memory &own : memory) {
        if (job.filled && !transformers[job.fill].run(own, x, 0, job.filled, {0, job.filled})) {
            measure_fail("%s: %s: filling %zu positions of the cache failed", reader->path, job.transformers[job.fill].name, job.filled);
        }
    }
    std::vector<measure_call> calls;
    for (size_t i = 0; i < job.call_count; ++i) {
        const measure_transformer_call &of = job.calls[i];
        const std::string alike = std::to_string(of.tokens) + "/" + std::to_string(of.position);
        calls.push_back(
            {of.name, callers, false,
             [&transformers, &of, &memory, x, d = job.d, offsets = offsets_of(of.tokens, job.sequence), turn = size_t{0}]() mutable {
                 const size_t first = turn;
                 turn += memory.size();
                 return all_together(memory.size(), [&](size_t caller) {
                     const float *own = x + (first + caller) % turns * d;
                     return transformers[of.transformer].run(memory[caller], own, of.position, of.tokens, offsets);
                 });
             },
             0, 1, job.timing.alike ? alike : ""});
    }
    for (size_t i = 0; i < job.read_count; ++i) {
        const measure_read &of = job.reads[i];
        const files_mapping &blob = transformers[of.transformer].blob;
        const size_t bytes = of.cache ? of.bytes : std::min(of.bytes, blob.bytes);
        calls.push_back({of.name, callers, false, [&memory, &of, blob, bytes] {
                             return all_together(memory.size(), [&](size_t caller) {
                                 read_streams(of.cache ? memory[caller].cache : blob.data, bytes);
                                 return true;
                             });
                         }});
    }
    baseline_products products(job);
    for (size_t i = 0; i < job.product_call_count; ++i) {
        products.add(job.product_calls[i], &calls);
    }
    const float *numbers = random_numbers(values, job.timing.seed + 1, 0.0, 1.0);
    const float *q = random_numbers(tokens * job.heads * job.width, job.timing.seed + 2, 0.0, 1.0);
    for (size_t i = 0; i < job.attention_call_count; ++i) {
        calls.push_back(attention_call(job, job.attention_calls[i], q, numbers, memory));
    }
    for (const baseline_product_library *library : libraries) {
        char text[256];
        library->describe(text, sizeof(text));
        benchmark::AddCustomContext(library->description, text);
    }
    measure_run(job.timing, &calls, out);
}
