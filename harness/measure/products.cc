// Times products and attention of other libraries, as they are in blocks of transformers, each checked before.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "gen/weights/random.h"
#include "harness/base/blob_memory.h"
#include "harness/baseline/products.h"
#include "harness/measure/baselines.hh"

namespace
{

constexpr size_t most_tokens = 1 << 24;

const baseline_product_library *const libraries[] = {&baseline_products_openblas, &baseline_products_onednn};

// Random numbers. They live until the process ends.
float *random_numbers(size_t count, uint64_t seed, double deviation)
{
    auto *numbers = static_cast<float *>(memory_of_large_pages(count * sizeof(float)));
    if (!numbers) {
        measure_fail("out of memory for %zu numbers", count);
    }
    measure_random(numbers, count, seed, deviation);
    return numbers;
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

// So many callers at a time, each with what it has made.
measure_call together(const char *name, size_t callers, const std::function<bool(size_t)> &one)
{
    return {name, callers, false, [=] { return measure_together(callers, one); }};
}

// The products of the baselines, each checked when it is made.
class baseline_products
{
  public:
    baseline_products(const measure_object &job, const measure_timing_job &timing) : callers_(timing.threads)
    {
        size_t inputs = 1, outputs = 1, tokens = 1;
        for (const measure_object &row : job.objects("products")) {
            const size_t own_inputs = row.integer("inputs", 1, 1 << 24), own_outputs = row.integer("outputs", 1, 1 << 24);
            matrices_.push_back(
                {own_inputs, own_outputs,
                 random_numbers(own_inputs * own_outputs, timing.seed + matrices_.size(), 1.0 / static_cast<double>(own_inputs))});
            inputs = std::max(inputs, own_inputs);
            outputs = std::max(outputs, own_outputs);
        }
        for (const measure_object &row : job.objects("product_calls")) {
            tokens = std::max(tokens, row.integer("tokens", 1, most_tokens));
        }
        x_ = random_numbers(tokens * inputs, timing.seed, 0.0);
        y_step_ = tokens * outputs;
        y_ = random_numbers(callers_ * y_step_, timing.seed, 0.0);
        random_state random = random_seed(timing.seed);
        std::generate_n(x_, tokens * inputs, [&] { return static_cast<float>(random_uniform(&random)); });
    }

    // Adds the call, and its largest relative error to the context. Of types narrower than float32 a library may have no product for this
    // CPU, or one that overflows: those are left out. Each caller has products of its own.
    void add(const measure_object &row, std::vector<measure_call> *calls)
    {
        const baseline_product_library *library = find_library(row.word("library"));
        const char *name = row.text("name"), *type = row.word("type");
        const size_t tokens = row.integer("tokens", 1, most_tokens);
        std::vector<void *> products;
        double worst = 0.0;
        for (size_t i = 0; i < callers_ * matrices_.size(); ++i) {
            char error[512];
            void *made = product(library, type, tokens, matrices_[i % matrices_.size()], &worst, error, sizeof(error));
            if (!made && std::strcmp(type, "f32") != 0) {
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
        measure_note(name, text);
        const auto call = [=, y = y_, y_step = y_step_, count = matrices_.size()](size_t caller) {
            const auto first = products.begin() + static_cast<ptrdiff_t>(caller * count);
            return std::all_of(first, first + static_cast<ptrdiff_t>(count),
                               [=](void *one) { return library->multiply(one, y + caller * y_step); });
        };
        calls->push_back(together(name, callers_, call));
    }

  private:
    // A product that is right, with *worst raised to its error, or nullptr with one line in error.
    void *product(const baseline_product_library *library, const char *type, size_t tokens, const baseline_matrix &matrix, double *worst,
                  char *error, size_t error_size)
    {
        void *made = library->product(&matrix, type, tokens, x_, error, error_size);
        if (!made) {
            return nullptr;
        }
        const bool ran = library->multiply(made, y_);
        const double off = baseline_product_error(&matrix, tokens, x_, y_), most = baseline_product_tolerance(type);
        if (ran && off <= most) {
            *worst = std::max(*worst, off);
            return made;
        }
        std::snprintf(error, error_size, "%s: %s, %zu tokens: relative error %.2g of a product: must be at most %g", library->name, type,
                      tokens, off, most);
        return nullptr;
    }

    size_t callers_, y_step_;
    std::vector<baseline_matrix> matrices_;
    float *x_, *y_;
};

// Attention of the baselines, checked when it is made.
void add_attention(const measure_object &job, const measure_timing_job &timing, const measure_workshop &shop,
                   std::vector<measure_call> *calls)
{
    constexpr double tolerance = 1e-4;
    const std::vector<measure_object> rows = job.objects("attention_calls");
    const size_t heads = job.integer("heads", 1, 1 << 24), kv_heads = job.integer("kv_heads", 1, heads),
                 width = job.integer("width", 1, 1 << 24), layers = job.integer("layers", 1, 1 << 24);
    size_t values = 1, most = 1;
    for (const measure_object &row : rows) {
        const size_t tokens = row.integer("tokens", 1, most_tokens), position = row.integer("position", 0, most_tokens);
        values = std::max(values, 2 * layers * (position + tokens) * kv_heads * width);
        most = std::max(most, tokens);
    }
    const float *numbers = random_numbers(values, timing.seed + 1, 1.0), *q = random_numbers(most * heads * width, timing.seed + 2, 1.0);
    for (const measure_object &row : rows) {
        const baseline_product_library *library = find_library(row.word("library"));
        const size_t tokens = row.integer("tokens", 1, most_tokens), position = row.integer("position", 0, most_tokens),
                     set = (position + tokens) * kv_heads * width;
        const baseline_attention attention = {heads,  kv_heads,           width, tokens,  position,
                                              layers, job.flag("causal"), q,     numbers, numbers + layers * set};
        std::vector<void *> made;
        std::vector<float *> y;
        for (size_t caller = 0; caller < timing.threads; ++caller) {
            char error[512];
            y.push_back(reinterpret_cast<float *>(shop.memory("y", caller)));
            made.push_back(library->attention(&attention, error, sizeof(error)));
            if (!made.back()) {
                measure_fail("%s", error);
            }
            const bool ran = library->attend(made.back(), y.back());
            const double off = baseline_attention_error(&attention, y.back());
            if (!ran || !(off <= tolerance)) {
                measure_fail("%s: attention of %zu tokens: relative error %.2g: must be at most %g", library->name, tokens, off, tolerance);
            }
        }
        calls->push_back(
            together(row.text("name"), timing.threads, [=](size_t caller) { return library->attend(made[caller], y[caller]); }));
    }
}

} // namespace

void measure_add_products(const measure_object &job, const measure_timing_job &timing, const measure_workshop &shop,
                          std::vector<measure_call> *calls)
{
    if (!job.has("product_calls")) {
        return;
    }
    static baseline_products products(job, timing); // as long as the calls
    for (const measure_object &row : job.objects("product_calls")) {
        products.add(row, calls);
    }
    add_attention(job, timing, shop, calls);
    for (const baseline_product_library *library : libraries) {
        char text[256];
        library->describe(text, sizeof(text));
        measure_note(library->description, text);
    }
}
