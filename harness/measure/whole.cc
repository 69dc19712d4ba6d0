// Times compiled whole models: from ids to vectors or logits.
#include "harness/measure/whole.hh"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gen/weights/random.h"
#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"

namespace
{

using bind_function = int(const void *blob, size_t bytes, void *weights);
using encode_function = int(const void *weights, const int32_t *ids, const size_t *offsets, size_t sequences, float *y, void *scratch);
using start_function = void(void *state);
using prefill_function = int(const void *weights, void *state, const int32_t *ids, size_t n, float *logits, void *scratch);
using step_function = int(const void *weights, void *state, int32_t id, float *logits, void *scratch);

void *memory_or_fail(size_t bytes)
{
    void *memory = memory_of_large_pages(bytes);
    if (!memory) {
        measure_fail("out of memory for %zu bytes", bytes);
    }
    return memory;
}

// The function that `library` calls so; without a name there is none.
template <typename function> function *find(const measure_whole &job, void *library, const char *name)
{
    void *address = name ? dlsym(library, name) : nullptr;
    if (name && !address) {
        measure_fail("%s: no function %s", job.library, name);
    }
    return reinterpret_cast<function *>(address);
}

// A model that can be called.
struct loaded_whole {
    const measure_whole *job;
    void *weights, *scratch;
    encode_function *encode;
    start_function *start;
    prefill_function *prefill;
    step_function *step;
};

loaded_whole load(const measure_whole &job, std::map<std::string, files_mapping> *blobs)
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
    const loaded_whole loaded = {&job,
                                 aligned_memory(job.weights_struct_bytes),
                                 memory_or_fail(job.scratch_bytes + 1),
                                 find<encode_function>(job, library, job.encode_batch),
                                 find<start_function>(job, library, job.start),
                                 find<prefill_function>(job, library, job.prefill),
                                 find<step_function>(job, library, job.step)};
    if (!loaded.weights) {
        measure_fail("%s: out of memory", job.library);
    }
    const int status = find<bind_function>(job, library, job.bind)(blob->second.data, blob->second.bytes, loaded.weights);
    if (status != 0) {
        measure_fail("%s: refused by %s with code %d", job.blob, job.bind, status);
    }
    return loaded;
}

// Random ids below `vocab`. They live until the process ends.
const int32_t *random_ids(size_t count, uint64_t seed, size_t vocab)
{
    auto *ids = static_cast<int32_t *>(memory_or_fail(count * sizeof(int32_t)));
    random_state random = random_seed(seed);
    std::generate_n(ids, count, [&] { return static_cast<int32_t>(random_bits(&random) % vocab); });
    return ids;
}

constexpr size_t turns = 64; // calls take turns in ids: rows of tables that the same ones take would stay in the caches

measure_call encode_call(const measure_whole_call &of, size_t threads, const loaded_whole &m, const int32_t *ids, float *y)
{
    std::vector<size_t> offsets(of.sequences + 1);
    for (size_t s = 0; s <= of.sequences; ++s) {
        offsets[s] = s * of.tokens;
    }
    return {of.name, threads, false, [=, sequences = of.sequences, turn = size_t{0}]() mutable {
                return m.encode(m.weights, ids + turn++ % turns, offsets.data(), sequences, y, m.scratch) == 0;
            }};
}

measure_call prefill_call(const measure_whole_call &of, size_t threads, const loaded_whole &m, const int32_t *ids, float *y, void *state)
{
    return {of.name, threads, false, [=, tokens = of.tokens, turn = size_t{0}]() mutable {
                m.start(state);
                return m.prefill(m.weights, state, ids + turn++ % turns, tokens, y, m.scratch) == 0;
            }};
}

// The state is that of `position` tokens again before every call: what a step adds to it lies behind them.
measure_call step_call(const measure_whole_call &of, const loaded_whole &m, const int32_t *ids, float *y)
{
    auto *state = static_cast<unsigned char *>(memory_or_fail(m.job->state_bytes));
    m.start(state);
    if (of.position && m.prefill(m.weights, state, ids, of.position, y, m.scratch) != 0) {
        measure_fail("%s: a prefill of %zu tokens failed", m.job->library, of.position);
    }
    std::vector<unsigned char> header(state, state + m.job->state_header);
    return {of.name, 1, false, [=, turn = size_t{0}]() mutable {
                std::memcpy(state, header.data(), header.size());
                return m.step(m.weights, state, ids[turn++ % turns], y, m.scratch) == 0;
            }};
}

} // namespace

void measure_time_whole(measure_reader *reader, const json_t *root, const char *out)
{
    measure_whole_job job;
    if (!measure_whole_job_read(reader, root, &job)) {
        measure_fail("%s", reader->error);
    }
    if (job.timing.limits) {
        measure_add_limits(job.timing);
    }
    // Everything that the calls use is made and touched before the first one is timed. It lives until the process ends.
    std::map<std::string, files_mapping> blobs;
    std::vector<loaded_whole> models;
    size_t tokens = 1, values = 1, state_bytes = 1;
    for (size_t i = 0; i < job.model_count; ++i) {
        models.push_back(load(job.models[i], &blobs));
        state_bytes = std::max(state_bytes, job.models[i].state_bytes);
    }
    for (size_t i = 0; i < job.call_count; ++i) {
        const measure_whole_call &of = job.calls[i];
        const size_t many = std::max(of.tokens * of.sequences, of.position);
        tokens = std::max(tokens, many);
        values = std::max(values, (job.causal ? 1 : many) * job.models[of.model].d_out);
    }
    auto *y = static_cast<float *>(memory_or_fail(values * sizeof(float)));
    void *state = memory_or_fail(state_bytes);
    std::memset(y, 0, values * sizeof(float));
    std::memset(state, 0, state_bytes);
    std::vector<measure_call> calls;
    for (size_t i = 0; i < job.call_count; ++i) {
        const measure_whole_call &of = job.calls[i];
        const loaded_whole &m = models[of.model];
        const int32_t *ids = random_ids(tokens + turns, job.timing.seed, m.job->vocab);
        calls.push_back(!job.causal ? encode_call(of, job.timing.threads, m, ids, y)
                        : of.step   ? step_call(of, m, ids, y)
                                    : prefill_call(of, job.timing.threads, m, ids, y, state));
    }
    measure_run(job.timing, &calls, out);
}
