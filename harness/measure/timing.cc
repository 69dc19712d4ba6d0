// What surrounds the times: how a job wants them, progress, and the limits of this core.
#include "harness/measure/timing.hh"

#include <unistd.h>

#include <cstdio>

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
    asm volatile("" : : "r"(sum)); // so that it has to be read
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
        measure_note(one.name, text);
    }
}
