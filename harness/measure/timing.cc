// Times calls with Google Benchmark in interleaved repetitions.
#include "harness/measure/timing.hh"

#include <jansson.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include "gen/weights/random.h"
#include "harness/base/clock.h"
#include "harness/measure/limits.h"

namespace
{

constexpr double cold_factor = 3.0; // a repetition of cold calls takes so much longer: emptying the caches takes most of it

// Seconds of one call on the clock that counts for it.
double seconds_of(const measure_call &timed)
{
    const auto clock = timed.threads > 1 ? seconds_now : thread_seconds_now;
    const double start = clock();
    timed.call();
    return clock() - start;
}

// How many calls take about min_time, without what has to be done before each of them.
benchmark::IterationCount calls_of(const measure_call &timed, double min_time, measure_cache_sweep &sweep)
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

void time_warm(benchmark::State &state, const measure_call &timed, bool *good)
{
    if (timed.calls > 1) {
        *good &= timed.call(); // untimed: brings weights and code into the caches that others used meanwhile
    }
    for (auto iteration : state) {
        (void)iteration;
        *good &= timed.call();
    }
}

void time_cold(benchmark::State &state, const measure_call &timed, measure_cache_sweep &sweep)
{
    for (auto iteration : state) {
        (void)iteration;
        sweep();
        state.SetIterationTime(seconds_of(timed));
    }
}

// Registers one repetition of a call; what fails leaves its name in *failed.
void add_repetition(const measure_call &timed, measure_progress &shown, measure_cache_sweep &sweep, std::string *failed)
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

// The library does not report a file that it could not write to the end.
void check_written(const char *out)
{
    json_error_t mistake;
    json_t *written = json_load_file(out, 0, &mistake);
    if (!written) {
        measure_fail("%s: could not be written: %s", out, mistake.text);
    }
    json_decref(written);
}

} // namespace

measure_progress::measure_progress(size_t total) : terminal_(isatty(STDERR_FILENO) != 0), total_(total) {}

void measure_progress::show(const std::string &name)
{
    ++done_;
    if (terminal_) {
        std::fprintf(stderr, "\rmeasuring %zu/%zu %s\033[K", done_, total_, name.c_str());
    }
}

void measure_progress::note(const char *text) const
{
    if (terminal_) {
        std::fprintf(stderr, "\r%s\033[K", text);
    }
}

void measure_progress::clear() const
{
    if (terminal_) {
        std::fputs("\r\033[K", stderr);
    }
}

void measure_cache_sweep::operator()() const
{
    uint64_t sum = 0;
    for (size_t i = 0; i < memory_.size(); i += 64 / sizeof(uint64_t)) {
        sum += memory_[i];
    }
    benchmark::DoNotOptimize(sum);
}

measure_timing_job::measure_timing_job(const measure_object &job)
    : model(job.word("model")), seed(job.integer("seed", 0, INT64_MAX)), threads(job.integer("threads", 1, 1024)),
      repetitions(job.integer("repetitions", 1, 1000)), min_time(job.number("min_time", 0.001, 60.0)), slices(job.integer("slices", 0, 64)),
      draw_order(job.flag("draw_order")), order_seed(job.integer("order_seed", 0, INT64_MAX)),
      sweep_bytes(job.integer("sweep_bytes", 0, (size_t)1 << 36)), limits(job.flag("limits"))
{
    if (!limits) {
        return;
    }
    const measure_object object = job.inner("sizes");
    for (const measure_object &row : object.objects("rows")) {
        const size_t bytes = row.integer("row", 1, 1 << 24);
        rows.push_back({row.word("name"), bytes, row.integer("table", bytes, (size_t)1 << 44)});
    }
    sizes = {object.integer("l1d", 1 << 12, 1 << 26), object.integer("l2", 1 << 12, 1 << 26),
             object.integer("l3", 1 << 12, (size_t)1 << 36), rows.data(), rows.size()};
}

void measure_add_limits(const measure_timing_job &job)
{
    if (!job.limits) {
        return;
    }
    std::vector<limit> found(LIMITS_OF_CORE + job.sizes.row_kinds);
    measure_progress(0).note("measuring the limits of this core");
    if (!limits_measure(&job.sizes, job.repetitions, found.data())) {
        measure_fail("out of memory for measuring the limits of this core");
    }
    for (const limit &one : found) {
        char text[32];
        std::snprintf(text, sizeof(text), "%.9g", one.rate);
        benchmark::AddCustomContext(one.name, text);
    }
}

void measure_run(const measure_timing_job &job, std::vector<measure_call> *calls, const char *out)
{
    if (job.slices > 0) {
        measure_run_slices(job, *calls, out);
        return;
    }
    std::vector<std::string> words = {"lookupc-measure", "--benchmark_filter=.", "--benchmark_out_format=json",
                                      "--benchmark_out=" + std::string(out)};
    std::vector<char *> arguments;
    for (std::string &word : words) {
        arguments.push_back(word.data());
    }
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());

    const bool any_cold = std::any_of(calls->begin(), calls->end(), [](const measure_call &timed) { return timed.cold; });
    measure_cache_sweep sweep(any_cold ? job.sweep_bytes : 0);
    size_t total = 0;
    std::vector<measure_call *> order;
    std::map<std::string, benchmark::IterationCount> known;
    benchmark::AddCustomContext("model", job.model);
    benchmark::AddCustomContext("cpu_model", cpu_model());
    for (measure_call &timed : *calls) {
        total += (job.repetitions + timed.turns - 1 - timed.turn) / timed.turns;
        const auto found = known.find(timed.alike);
        timed.calls = found != known.end() ? found->second : calls_of(timed, job.min_time * (timed.cold ? cold_factor : 1.0), sweep);
        if (!timed.alike.empty()) {
            known[timed.alike] = timed.calls;
        }
        order.push_back(&timed);
    }
    measure_progress shown(total);
    random_state random = random_seed(job.order_seed);
    std::string failed;
    for (size_t repetition = 0; repetition < job.repetitions; ++repetition) {
        for (size_t left = order.size(); job.draw_order && left > 1; --left) {
            std::swap(order[left - 1], order[random_bits(&random) % left]);
        }
        for (const measure_call *timed : order) {
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
        measure_fail("%s: the library reports an error", failed.c_str());
    }
    check_written(out);
}
