// Times dense FFNs of other libraries, each checked before.
#include <algorithm>
#include <cstdio>

#include "harness/baseline/ffn.h"
#include "harness/measure/baselines.hh"

namespace
{

// The tokens that calls walk through: x [tokens][d].
struct measure_pool {
    size_t tokens, d;
    const float *x;
};

const baseline_library *const baseline_libraries[] = {&baseline_openblas, &baseline_onednn, &baseline_onednn_bf16, &baseline_onednn_i8};

constexpr size_t checked_tokens = 8; // of each dense FFN

// "openblas/f32"
std::string name_of(const baseline_library *library)
{
    return library->name + std::string("/") + library->type;
}

// The largest relative error of some tokens, of one call or several; stops with one line if rounding does not explain what they are off.
double check_dense(const baseline_library *library, void *ffn, const baseline_weights &weights, size_t batch, const measure_pool &pool,
                   float *y)
{
    double worst = 0.0;
    const size_t of_call = std::min(batch, checked_tokens), calls = std::min(checked_tokens / of_call, pool.tokens / batch);
    for (size_t call = 0; call < calls; ++call) {
        const float *x = pool.x + call * batch * pool.d;
        if (!library->run(ffn, x, y)) {
            measure_fail("%s: %zu tokens: the library reports an error", name_of(library).c_str(), batch);
        }
        for (size_t i = 0; i < of_call; ++i) {
            const size_t token = of_call > 1 ? i * (batch - 1) / (of_call - 1) : 0;
            const baseline_error error = baseline_check(library, &weights, x, batch, token, y + token * weights.d_out);
            if (!(error.deviations <= BASELINE_DEVIATIONS)) {
                measure_fail("%s: %zu tokens: an output of token %zu is off by %.3g times what rounding explains: must be at most %d; "
                             "relative error %.2g",
                             name_of(library).c_str(), batch, token, error.deviations, static_cast<int>(BASELINE_DEVIATIONS),
                             error.relative);
            }
            worst = std::max(worst, error.relative);
        }
    }
    return worst;
}

// Adds the calls of a dense FFN, and to the context what its library chose and how far it is off; or why it is not there.
void add_dense(const baseline_library *library, const baseline_weights &weights, const std::vector<size_t> &batches, size_t threads,
               const measure_pool &pool, float *y, std::vector<measure_call> *calls)
{
    char text[256];
    for (const size_t batch : batches) {
        const std::string name = "dense/" + name_of(library) + "/" + std::to_string(batch);
        void *ffn = library->create(&weights, batch, threads, text, sizeof(text));
        if (!ffn && text[0] == '\0') {
            measure_note(library->description, "none");
            return;
        }
        if (!ffn) {
            measure_fail("%s", text);
        }
        std::snprintf(text, sizeof(text), "%.9g", check_dense(library, ffn, weights, batch, pool, y));
        measure_note(name, text);
        calls->push_back({name, threads, false, [=, tokens = pool.tokens, x = pool.x, d = pool.d, position = size_t{0}]() mutable {
                              const float *from = x + position * d;
                              position = position + 2 * batch <= tokens ? position + batch : 0;
                              return library->run(ffn, from, y);
                          }});
    }
    library->describe(text, sizeof(text));
    measure_note(library->description, text);
}

const baseline_library *find_dense(const measure_object &job, const char *name)
{
    std::string known;
    for (const baseline_library *library : baseline_libraries) {
        if (name_of(library) == name) {
            return library;
        }
        known += (known.empty() ? "" : ", ") + name_of(library);
    }
    measure_fail("%s: dense: %.60s: must be one of %s", job.file(), name, known.c_str());
}

} // namespace

void measure_add_dense(const measure_object &job, const measure_timing_job &timing, const measure_workshop &shop,
                       std::vector<measure_call> *calls)
{
    if (job.values("dense").empty()) {
        return;
    }
    const size_t d = job.integer("d", 1, 1 << 20), hidden = job.integer("baseline_hidden", 1, 1 << 24),
                 d_out = job.integer("d_out", 1, 1 << 20);
    const measure_pool pool = {shop.bytes("uniform") / sizeof(float) / d, d, reinterpret_cast<const float *>(shop.memory("uniform"))};
    std::vector<size_t> batches;
    for (const json_t *batch : job.values("batches")) {
        batches.push_back(static_cast<size_t>(json_integer_value(batch)));
    }
    static baseline_weights weights; // as long as the calls
    if (!baseline_weights_create(&weights, d, hidden, d_out, timing.seed + 1)) {
        measure_fail("%s: out of memory for the dense FFN", job.file());
    }
    baseline_weights_calibrate(&weights, pool.x, pool.tokens);
    for (const json_t *name : job.values("dense")) {
        const char *text = json_string_value(name);
        add_dense(find_dense(job, text ? text : "?"), weights, batches, timing.threads, pool, reinterpret_cast<float *>(shop.memory("y")),
                  calls);
    }
}
