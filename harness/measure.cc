// The measuring process: times compiled variants and dense FFNs, interleaved.
// Usage: lookupc-measure JOB.json OUT.json. OUT.json is complete when the exit status is 0; its times are of one call of a whole batch. Of
// what runs on several threads real_time counts, and cpu_time is that of all threads together; of calls with cold tables real_time counts,
// which is CPU time on one thread; else cpu_time counts.
// OpenBLAS reads OPENBLAS_CORETYPE when it is loaded: the parent sets it.
#include <benchmark/benchmark.h>
#include <jansson.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "blob_memory.h"
#include "clock.h"
#include "dense.h"
#include "gen/weights/random.h"
#include "limits.h"
#include "measure_job.h"
#include "measure_variant.h"
#include "memory.h"

namespace
{

const dense_library *const dense_libraries[] = {&dense_openblas, &dense_onednn};

constexpr double dense_tolerance = 1e-4;

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::fputs("lookupc-measure: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
    std::exit(1);
}

// "measuring 12/245 ffn/avx512/4096", in place, on a terminal only.
class progress
{
  public:
    explicit progress(size_t total) : total_(total) {}
    void show(const std::string &name)
    {
        ++done_;
        if (terminal_) {
            std::fprintf(stderr, "\rmeasuring %zu/%zu %s\033[K", done_, total_, name.c_str());
        }
    }
    void note(const char *text) const
    {
        if (terminal_) {
            std::fprintf(stderr, "\r%s\033[K", text);
        }
    }
    void clear() const
    {
        if (terminal_) {
            std::fputs("\r\033[K", stderr);
        }
    }

  private:
    const bool terminal_ = isatty(STDERR_FILENO) != 0;
    size_t done_ = 0;
    const size_t total_;
};

// One thing to be timed: `call` runs on so many threads and returns false on failure. A cold one is called with nothing of what it reads in
// the caches.
struct timed_call {
    std::string name;
    size_t threads;
    bool cold;
    std::function<bool()> call;
    size_t turn = 0, turns = 1;          // it is timed in repetitions turn, turn + turns, …
    std::string alike = "";              // calls with the same text here that is not "" are made equally often
    benchmark::IterationCount calls = 1; // of one repetition
};

constexpr double cold_factor = 3.0; // a repetition of cold calls takes so much longer: emptying the caches takes most of it

// Memory that is larger than all caches: reading it leaves nothing else in them.
class cache_sweep
{
  public:
    explicit cache_sweep(size_t bytes) : memory_(bytes / sizeof(uint64_t), 1) {}
    void operator()()
    {
        uint64_t sum = 0;
        for (size_t i = 0; i < memory_.size(); i += 64 / sizeof(uint64_t)) {
            sum += memory_[i];
        }
        benchmark::DoNotOptimize(sum);
    }

  private:
    std::vector<uint64_t> memory_;
};

// Seconds of one call on the clock that counts for it.
double seconds_of(const timed_call &timed)
{
    const auto clock = timed.threads > 1 ? seconds_now : thread_seconds_now;
    const double start = clock();
    timed.call();
    return clock() - start;
}

// How many calls take about min_time, without what has to be done before each of them.
benchmark::IterationCount calls_of(const timed_call &timed, double min_time, cache_sweep &sweep)
{
    double taken = 0.0;
    benchmark::IterationCount calls = 0;
    for (benchmark::IterationCount more = 1; taken < min_time / 4; more *= 2) {
        const double start = seconds_now();
        for (benchmark::IterationCount i = 0; i < more; ++i) {
            if (timed.cold) {
                sweep();
            }
            timed.call();
        }
        taken = seconds_now() - start;
        calls = more;
    }
    return std::max<benchmark::IterationCount>(1,
                                               static_cast<benchmark::IterationCount>(min_time / taken * static_cast<double>(calls) + 0.5));
}

void time_warm(benchmark::State &state, const timed_call &timed, bool *good)
{
    if (timed.calls > 1) {
        *good &= timed.call(); // untimed: brings weights and code into the caches that others used meanwhile
    }
    for (auto iteration : state) {
        (void)iteration;
        *good &= timed.call();
    }
}

void time_cold(benchmark::State &state, const timed_call &timed, cache_sweep &sweep)
{
    for (auto iteration : state) {
        (void)iteration;
        sweep();
        state.SetIterationTime(seconds_of(timed));
    }
}

// Registers one repetition of a call; what fails leaves its name in *failed.
void add_repetition(const timed_call &timed, progress &shown, cache_sweep &sweep, std::string *failed)
{
    auto *added = benchmark::RegisterBenchmark(timed.name.c_str(), [&, failed](benchmark::State &state) {
        shown.show(timed.name);
        bool good = true;
        if (timed.cold) {
            time_cold(state, timed, sweep);
        } else {
            time_warm(state, timed, &good);
        }
        if (!good && failed->empty()) {
            *failed = timed.name;
        }
    });
    added->Iterations(timed.calls);
    if (timed.cold) {
        added->UseManualTime();
    } else if (timed.threads > 1) {
        added->MeasureProcessCPUTime()->UseRealTime();
    }
}

// The calls of one variant that the job asks for.
void add_variant(const measure_job &job, const measure_variant_job &of, const measure_variant *variant, const measure_pool *pools, float *y,
                 std::vector<timed_call> *calls)
{
    for (size_t i = 0; i < job.batch_count; ++i) {
        const size_t batch = job.batches[i];
        if (batch < of.least_batch || batch > of.most_batch) {
            continue;
        }
        const std::string rest = "/" + std::string(of.name) + "/" + std::to_string(batch);
        const auto add_ffn = [&](const std::string &name, const measure_condition &condition, size_t turn, size_t turns) {
            const std::string alike = (condition.cold ? "cold/" : "warm/") + std::to_string(batch);
            calls->push_back({name, job.threads, condition.cold,
                              [=, pool = &pools[condition.skewed], position = size_t{0}]() mutable {
                                  measure_variant_ffn(variant, pool, batch, &position, y);
                                  return true;
                              },
                              turn, turns, job.alike ? alike : ""});
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

// Stops with one line if the first, middle or last token of a batch is wrong.
void check_dense(const dense_library *library, void *ffn, const dense_weights &weights, size_t batch, const float *x, float *y)
{
    if (!library->run(ffn, x, y)) {
        fail("%s: %zu tokens: the library reports an error", library->name, batch);
    }
    for (const size_t token : {size_t{0}, batch / 2, batch - 1}) {
        const double error = dense_relative_error(&weights, x + token * weights.d, y + token * weights.d_out);
        if (!(error <= dense_tolerance)) {
            fail("%s: %zu tokens: relative error %.2g of token %zu: must be at most %g", library->name, batch, error, token,
                 dense_tolerance);
        }
    }
}

void add_dense(const measure_job &job, const dense_library *library, const dense_weights &weights, const measure_pool &pool, float *y,
               std::vector<timed_call> *calls)
{
    char text[256];
    for (size_t i = 0; i < job.batch_count; ++i) {
        const size_t batch = job.batches[i];
        void *ffn = library->create(&weights, batch, job.threads, text, sizeof(text));
        if (!ffn) {
            fail("%s", text);
        }
        check_dense(library, ffn, weights, batch, pool.x, y);
        calls->push_back({"dense/" + std::string(library->name) + "/" + std::to_string(batch), job.threads, false,
                          [=, tokens = pool.tokens, x = pool.x, d = pool.d, position = size_t{0}]() mutable {
                              const float *from = x + position * d;
                              position = position + 2 * batch <= tokens ? position + batch : 0;
                              return library->run(ffn, from, y);
                          }});
    }
    library->describe(text, sizeof(text));
    benchmark::AddCustomContext(library->description, text);
}

const dense_library *find_dense(const char *path, const char *name)
{
    std::string known;
    for (const dense_library *library : dense_libraries) {
        if (std::strcmp(library->name, name) == 0) {
            return library;
        }
        known += (known.empty() ? "" : ", ") + std::string(library->name);
    }
    fail("%s: dense: %.60s: must be one of %s", path, name, known.c_str());
}

std::string cpu_model()
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(": ");
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
            return line.substr(colon + 2);
        }
    }
    return "unknown";
}

// Google Benchmark wants a reporter for the display; nothing is shown but the progress.
class silent_reporter : public benchmark::BenchmarkReporter
{
  public:
    bool ReportContext(const Context &) override
    {
        return true;
    }
    void ReportRuns(const std::vector<Run> &) override {}
};

// Puts the limits of this core, measured now, into the context of the output.
void add_limits(const measure_job &job)
{
    std::vector<limit> found(LIMITS_OF_CORE + job.sizes.row_kinds);
    progress(0).note("measuring the limits of this core");
    if (!limits_measure(&job.sizes, found.data())) {
        fail("out of memory for measuring the limits of this core");
    }
    for (const limit &one : found) {
        char text[32];
        std::snprintf(text, sizeof(text), "%.9g", one.rate);
        benchmark::AddCustomContext(one.name, text);
    }
}

// Times all calls in each repetition, in an order of its own if the job wants it drawn.
void run(const measure_job &job, std::vector<timed_call> *calls, const char *out)
{
    std::vector<std::string> words = {"lookupc-measure", "--benchmark_filter=.", "--benchmark_out_format=json",
                                      "--benchmark_out=" + std::string(out)};
    std::vector<char *> arguments;
    for (std::string &word : words) {
        arguments.push_back(word.data());
    }
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());

    const bool any_cold = std::any_of(calls->begin(), calls->end(), [](const timed_call &timed) { return timed.cold; });
    cache_sweep sweep(any_cold ? job.sweep_bytes : 0);
    size_t total = 0;
    std::vector<timed_call *> order;
    std::map<std::string, benchmark::IterationCount> known;
    for (timed_call &timed : *calls) {
        total += (job.repetitions + timed.turns - 1 - timed.turn) / timed.turns;
        const auto found = known.find(timed.alike);
        timed.calls = found != known.end() ? found->second : calls_of(timed, job.min_time * (timed.cold ? cold_factor : 1.0), sweep);
        if (!timed.alike.empty()) {
            known[timed.alike] = timed.calls;
        }
        order.push_back(&timed);
    }
    progress shown(total);
    random_state random = random_seed(job.order_seed);
    std::string failed;
    for (size_t repetition = 0; repetition < job.repetitions; ++repetition) {
        for (size_t left = order.size(); job.draw_order && left > 1; --left) {
            std::swap(order[left - 1], order[random_bits(&random) % left]);
        }
        for (const timed_call *timed : order) {
            if (repetition % timed->turns == timed->turn) {
                add_repetition(*timed, shown, sweep, &failed);
            }
        }
    }
    silent_reporter silent;
    benchmark::RunSpecifiedBenchmarks(&silent);
    benchmark::Shutdown();
    shown.clear();
    if (!failed.empty()) {
        fail("%s: the library reports an error", failed.c_str());
    }
}

// Inputs whose codes are all about equally likely, and such as text has: frequent tokens come again and again, each time a little
// different.
void fill_pools(random_state *random, float *uniform, float *skewed, const measure_job &job, size_t tokens)
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

// The library does not report a file that it could not write to the end.
void check_written(const char *out)
{
    json_error_t mistake;
    json_t *written = json_load_file(out, 0, &mistake);
    if (!written) {
        fail("%s: could not be written: %s", out, mistake.text);
    }
    json_decref(written);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3) {
        std::fputs("usage: lookupc-measure JOB.json OUT.json\n", stderr);
        return 2;
    }
    char error[512];
    measure_job job;
    if (!measure_job_read(argv[1], &job, error, sizeof(error))) {
        fail("%s", error);
    }
    std::FILE *out = std::fopen(argv[2], "w");
    if (!out) {
        fail("%s: %s", argv[2], std::strerror(errno));
    }
    std::fclose(out);

    if (job.limits) {
        add_limits(job);
    }

    // Everything that the calls use is made and touched before the first one is timed. It lives until the process ends.
    const size_t tokens = std::max<size_t>(4096, 2 * job.largest_batch);
    auto *x = static_cast<float *>(aligned_memory(tokens * job.d * sizeof(float)));
    auto *skewed = static_cast<float *>(aligned_memory(tokens * job.d * sizeof(float)));
    auto *y = static_cast<float *>(aligned_memory(job.largest_batch * job.d_out * sizeof(float)));
    if (!x || !skewed || !y) {
        fail("%s: out of memory for %zu tokens", argv[1], tokens);
    }
    random_state random = random_seed(job.seed);
    fill_pools(&random, x, skewed, job, tokens);
    const measure_pool pools[] = {{tokens, job.d, x}, {tokens, job.d, skewed}}; // by measure_condition.skewed

    std::map<std::string, files_mapping> blobs; // by path: variants share them
    std::vector<measure_variant> variants(job.variant_count);
    std::vector<timed_call> calls;
    for (size_t i = 0; i < job.variant_count; ++i) {
        const measure_variant_job &of = job.variants[i];
        const auto [blob, first] = blobs.try_emplace(of.blob);
        if ((first && !blob_map(of.blob, &blob->second, error, sizeof(error))) ||
            !measure_variant_open(&variants[i], &of.variant, of.blob, &blob->second, error, sizeof(error)) ||
            (job.stages && !measure_variant_take_apart(&variants[i], &pools[0], error, sizeof(error)))) {
            fail("%s", error);
        }
        add_variant(job, of, &variants[i], pools, y, &calls);
    }

    dense_weights weights = {};
    if (job.dense_count && !dense_weights_create(&weights, job.d, job.dense_hidden, job.d_out, job.seed + 1)) {
        fail("%s: out of memory for the dense FFN", argv[1]);
    }
    for (size_t i = 0; i < job.dense_count; ++i) {
        add_dense(job, find_dense(argv[1], job.dense[i]), weights, pools[0], y, &calls);
    }

    benchmark::AddCustomContext("model", job.model);
    benchmark::AddCustomContext("cpu_model", cpu_model());
    run(job, &calls, argv[2]);
    check_written(argv[2]);
    return 0;
}
