// Times compiled variants of a LookupFFN and dense FFNs.
#include "harness/measure/lookup.hh"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "gen/weights/random.h"
#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"
#include "harness/baseline/ffn.h"
#include "harness/measure/timed_variant.h"

namespace
{

const baseline_library *const baseline_libraries[] = {&baseline_openblas, &baseline_onednn, &baseline_onednn_bf16, &baseline_onednn_i8};

constexpr size_t checked_tokens = 8; // of each dense FFN

// The calls of one variant that the job asks for.
void add_variant(const measure_ffn_job &job, const measure_variant_job &of, const measure_variant *variant, const measure_pool *pools,
                 float *y, std::vector<measure_call> *calls)
{
    for (size_t i = 0; i < job.batch_count; ++i) {
        const size_t batch = job.batches[i];
        if (batch < of.least_batch || batch > of.most_batch) {
            continue;
        }
        const std::string rest = "/" + std::string(of.name) + "/" + std::to_string(batch);
        const auto add_ffn = [&](const std::string &name, const measure_condition &condition, size_t turn, size_t turns) {
            const std::string alike = (condition.cold ? "cold/" : "warm/") + std::to_string(batch);
            calls->push_back({name, job.timing.threads, condition.cold,
                              [=, pool = &pools[condition.skewed], position = size_t{0}]() mutable {
                                  measure_variant_ffn(variant, pool, batch, &position, y);
                                  return true;
                              },
                              turn, turns, job.timing.alike ? alike : ""});
        };
        const auto add_stage = [&](const char *name, auto stage) {
            calls->push_back({name + rest, 1, false, [=, position = size_t{0}]() mutable {
                                  stage(variant, batch, &position, y);
                                  return true;
                              }});
        };
        for (size_t c = 0; c < job.condition_count; ++c) {
            add_ffn("ffn" + rest + measure_condition_suffix(&job.conditions[c]), job.conditions[c], job.take_turns ? c : 0,
                    job.take_turns ? job.condition_count : 1);
        }
        if (job.stages) {
            add_stage("project", measure_variant_project);
            add_stage("gather", measure_variant_gather);
            if (batch == job.largest_batch) {
                add_ffn("ffn_again" + rest, {}, 0, 1); // A/A control: how far apart two figures for the same code are
            }
        }
    }
}

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
void add_dense(const measure_ffn_job &job, const baseline_library *library, const baseline_weights &weights, const measure_pool &pool,
               float *y, std::vector<measure_call> *calls)
{
    char text[256];
    for (size_t i = 0; i < job.batch_count; ++i) {
        const size_t batch = job.batches[i];
        const std::string name = "dense/" + name_of(library) + "/" + std::to_string(batch);
        void *ffn = library->create(&weights, batch, job.timing.threads, text, sizeof(text));
        if (!ffn && text[0] == '\0') {
            benchmark::AddCustomContext(library->description, "none");
            return;
        }
        if (!ffn) {
            measure_fail("%s", text);
        }
        std::snprintf(text, sizeof(text), "%.9g", check_dense(library, ffn, weights, batch, pool, y));
        benchmark::AddCustomContext(name, text);
        calls->push_back(
            {name, job.timing.threads, false, [=, tokens = pool.tokens, x = pool.x, d = pool.d, position = size_t{0}]() mutable {
                 const float *from = x + position * d;
                 position = position + 2 * batch <= tokens ? position + batch : 0;
                 return library->run(ffn, from, y);
             }});
    }
    library->describe(text, sizeof(text));
    benchmark::AddCustomContext(library->description, text);
}

const baseline_library *find_dense(const char *path, const char *name)
{
    std::string known;
    for (const baseline_library *library : baseline_libraries) {
        if (name_of(library) == name) {
            return library;
        }
        known += (known.empty() ? "" : ", ") + name_of(library);
    }
    measure_fail("%s: dense: %.60s: must be one of %s", path, name, known.c_str());
}

// Inputs whose codes are all about equally likely, and such as text has: frequent tokens come again and again, each time a little
// different.
void fill_pools(random_state *random, float *uniform, float *skewed, const measure_ffn_job &job, size_t tokens)
{
    constexpr size_t kinds = 1024; // the k-th most frequent one is k times rarer than the first: Zipf's law
    constexpr double difference = 0.1;
    random_fill(random, uniform, tokens * job.d, 0.0, 1.0);
    std::vector<float> kind(kinds * job.d);
    random_fill(random, kind.data(), kind.size(), 0.0, 1.0);
    random_fill(random, skewed, tokens * job.d, 0.0, difference);
    for (size_t token = 0; token < tokens; ++token) {
        const auto place = static_cast<size_t>(std::exp(random_uniform(random) * std::log(static_cast<double>(kinds))));
        const float *from = &kind[(std::min(place, kinds) - 1) * job.d];
        for (size_t feature = 0; feature < job.d; ++feature) {
            skewed[token * job.d + feature] += from[feature];
        }
    }
}

} // namespace

void measure_time_ffn(measure_reader *reader, const json_t *root, const char *out)
{
    const measure_reader &in = *reader;
    measure_ffn_job job;
    if (!measure_ffn_job_read(reader, root, &job)) {
        measure_fail("%s", in.error);
    }
    if (job.timing.limits) {
        measure_add_limits(job.timing);
    }

    // Everything that the calls use is made and touched before the first one is timed. It lives until the process ends.
    const size_t tokens = std::max<size_t>(4096, 2 * job.largest_batch);
    auto *x = static_cast<float *>(aligned_memory(tokens * job.d * sizeof(float)));
    auto *skewed = static_cast<float *>(aligned_memory(tokens * job.d * sizeof(float)));
    auto *y = static_cast<float *>(aligned_memory(job.largest_batch * job.d_out * sizeof(float)));
    if (!x || !skewed || !y) {
        measure_fail("%s: out of memory for %zu tokens", in.path, tokens);
    }
    random_state random = random_seed(job.timing.seed);
    fill_pools(&random, x, skewed, job, tokens);
    const measure_pool pools[] = {{tokens, job.d, x}, {tokens, job.d, skewed}}; // by measure_condition.skewed

    char error[512];
    std::map<std::string, files_mapping> blobs; // by path: variants share them
    std::vector<measure_variant> variants(job.variant_count);
    std::vector<measure_call> calls;
    for (size_t i = 0; i < job.variant_count; ++i) {
        const measure_variant_job &of = job.variants[i];
        const auto [blob, first] = blobs.try_emplace(of.blob);
        if ((first && !blob_map(of.blob, &blob->second, error, sizeof(error))) ||
            !measure_variant_open(&variants[i], &of.variant, of.blob, &blob->second, error, sizeof(error)) ||
            (job.stages && !measure_variant_take_apart(&variants[i], &pools[0], error, sizeof(error)))) {
            measure_fail("%s", error);
        }
        add_variant(job, of, &variants[i], pools, y, &calls);
    }

    baseline_weights weights = {};
    if (job.baseline_count && !baseline_weights_create(&weights, job.d, job.baseline_hidden, job.d_out, job.timing.seed + 1)) {
        measure_fail("%s: out of memory for the dense FFN", in.path);
    }
    if (job.baseline_count) {
        baseline_weights_calibrate(&weights, x, tokens);
    }
    for (size_t i = 0; i < job.baseline_count; ++i) {
        add_dense(job, find_dense(in.path, job.dense[i]), weights, pools[0], y, &calls);
    }
    measure_run(job.timing, &calls, out);
}
