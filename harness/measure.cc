// The measuring process: times compiled variants and dense FFNs, interleaved.
// Usage: lookupc-measure JOB.json OUT.json. OUT.json is complete when the exit status is 0; its times are of one call of a whole batch. Of
// what runs on several threads real_time counts, and cpu_time is that of all threads together; else cpu_time counts.
// OpenBLAS reads OPENBLAS_CORETYPE when it is loaded: the parent sets it.
#include <benchmark/benchmark.h>
#include <jansson.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "blob_memory.h"
#include "dense.h"
#include "gen/weights/random.h"
#include "limits.h"
#include "measure_job.h"
#include "measure_variant.h"
#include "memory.h"

namespace
{

const dense_library *const dense_libraries[] = {&dense_openblas, &dense_onednn};

const struct {
    const char *name;
    void (*call)(const measure_variant *, size_t batch, size_t *position, float *y);
    bool split; // over the threads of the library
} stages[] = {{"ffn", measure_variant_ffn, true}, {"project", measure_variant_project, false}, {"gather", measure_variant_gather, false}};

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
    void begin(size_t repetitions)
    {
        total_ += repetitions;
    }
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
    size_t done_ = 0, total_ = 0;
};

progress shown;
std::string first_failure;

// Registers a benchmark whose iterations are calls of `call` on so many threads, which returns false on failure.
template <typename Call> void add(const std::string &name, size_t repetitions, size_t threads, Call call)
{
    shown.begin(repetitions);
    // The first repetition tries longer and longer runs; the others repeat the length that it found.
    auto *added =
        benchmark::RegisterBenchmark(name.c_str(), [name, call, length = benchmark::IterationCount{0}](benchmark::State &state) mutable {
            if (length == 0 || length == state.max_iterations) {
                shown.show(name);
            }
            length = state.max_iterations;
            bool good = call(); // untimed: brings weights and code into the caches that other benchmarks used meanwhile
            for (auto iteration : state) {
                (void)iteration;
                good &= call();
            }
            if (!good && first_failure.empty()) {
                first_failure = name;
            }
        });
    if (threads > 1) {
        added->MeasureProcessCPUTime()->UseRealTime();
    }
}

void add_variant(const measure_job &job, const measure_variant_job &of, const measure_variant *variant, float *y)
{
    for (size_t i = 0; i < job.batch_count; ++i) {
        const size_t batch = job.batches[i];
        if (batch < of.least_batch || batch > of.most_batch) {
            continue;
        }
        const std::string rest = "/" + std::string(of.name) + "/" + std::to_string(batch);
        const auto add_stage = [&](const char *name, auto stage, size_t threads) {
            add(name + rest, job.repetitions, threads, [=, position = size_t{0}]() mutable {
                stage(variant, batch, &position, y);
                return true;
            });
        };
        for (const auto &stage : stages) {
            add_stage(stage.name, stage.call, stage.split ? job.threads : 1);
        }
        if (batch == job.largest_batch) {
            add_stage("ffn_again", measure_variant_ffn, job.threads); // A/A control: how far apart two figures for the same code are
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

void add_dense(const measure_job &job, const dense_library *library, const dense_weights &weights, const measure_pool &pool, float *y)
{
    char text[256];
    for (size_t i = 0; i < job.batch_count; ++i) {
        const size_t batch = job.batches[i];
        void *ffn = library->create(&weights, batch, job.threads, text, sizeof(text));
        if (!ffn) {
            fail("%s", text);
        }
        check_dense(library, ffn, weights, batch, pool.x, y);
        add("dense/" + std::string(library->name) + "/" + std::to_string(batch), job.repetitions, job.threads,
            [=, tokens = pool.tokens, x = pool.x, d = pool.d, position = size_t{0}]() mutable {
                const float *from = x + position * d;
                position = position + 2 * batch <= tokens ? position + batch : 0;
                return library->run(ffn, from, y);
            });
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
    shown.note("measuring the limits of this core");
    if (!limits_measure(&job.sizes, found.data())) {
        fail("out of memory for measuring the limits of this core");
    }
    for (const limit &one : found) {
        char text[32];
        std::snprintf(text, sizeof(text), "%.9g", one.rate);
        benchmark::AddCustomContext(one.name, text);
    }
}

void run(const measure_job &job, const char *out)
{
    char min_time[64];
    std::snprintf(min_time, sizeof(min_time), "--benchmark_min_time=%.9g", job.min_time);
    std::vector<std::string> words = {"lookupc-measure",
                                      "--benchmark_filter=.",
                                      "--benchmark_enable_random_interleaving=true",
                                      "--benchmark_repetitions=" + std::to_string(job.repetitions),
                                      min_time,
                                      "--benchmark_out_format=json",
                                      "--benchmark_out=" + std::string(out)};
    std::vector<char *> arguments;
    for (std::string &word : words) {
        arguments.push_back(word.data());
    }
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());

    silent_reporter silent;
    benchmark::RunSpecifiedBenchmarks(&silent);
    benchmark::Shutdown();
    shown.clear();
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

    add_limits(job);

    // Everything that the calls use is made and touched before the first one is timed. It lives until the process ends.
    const size_t tokens = std::max<size_t>(4096, 2 * job.largest_batch);
    auto *x = static_cast<float *>(aligned_memory(tokens * job.d * sizeof(float)));
    auto *y = static_cast<float *>(aligned_memory(job.largest_batch * job.d_out * sizeof(float)));
    if (!x || !y) {
        fail("%s: out of memory for %zu tokens", argv[1], tokens);
    }
    random_state random = random_seed(job.seed);
    random_fill(&random, x, tokens * job.d, 0.0, 1.0);
    const measure_pool pool = {tokens, job.d, x};

    std::map<std::string, files_mapping> blobs; // by path: variants share them
    std::vector<measure_variant> variants(job.variant_count);
    for (size_t i = 0; i < job.variant_count; ++i) {
        const measure_variant_job &of = job.variants[i];
        const auto [blob, first] = blobs.try_emplace(of.blob);
        if ((first && !blob_map(of.blob, &blob->second, error, sizeof(error))) ||
            !measure_variant_open(&variants[i], &of.variant, of.blob, &blob->second, &pool, error, sizeof(error))) {
            fail("%s", error);
        }
        add_variant(job, of, &variants[i], y);
    }

    dense_weights weights = {};
    if (job.dense_count && !dense_weights_create(&weights, job.d, job.dense_hidden, job.d_out, job.seed + 1)) {
        fail("%s: out of memory for the dense FFN", argv[1]);
    }
    for (size_t i = 0; i < job.dense_count; ++i) {
        add_dense(job, find_dense(argv[1], job.dense[i]), weights, pool, y);
    }

    benchmark::AddCustomContext("model", job.model);
    benchmark::AddCustomContext("cpu_model", cpu_model());
    run(job, argv[2]);
    check_written(argv[2]);
    if (!first_failure.empty()) {
        fail("%s: the library reports an error", first_failure.c_str());
    }
    return 0;
}
