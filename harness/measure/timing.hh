// The timing of the measuring process: calls in interleaved repetitions, and what stands beside them in its output.
#ifndef LOOKUPC_MEASURE_TIMING_HH
#define LOOKUPC_MEASURE_TIMING_HH

#include <functional>
#include <string>
#include <vector>

#include "harness/measure/limits.h"
#include "harness/measure/reader.hh"

// What all jobs say about how they are measured.
struct measure_timing_job {
    explicit measure_timing_job(const measure_object &job);

    const char *model;
    uint64_t seed;
    size_t threads; // that the libraries use at most, and the baselines
    size_t repetitions;
    double min_time; // seconds of one repetition
    size_t slices;   // of a repetition at most, which rotate among calls that are alike; 0: none
    bool draw_order; // anew in every repetition, from order_seed; else as listed
    uint64_t order_seed;
    size_t sweep_bytes;            // to be read to empty the caches
    bool limits;                   // measure those of this core
    limits_sizes sizes = {};       // for that
    std::vector<limits_rows> rows; // that sizes refers to
};

// One thing to be timed: `call` runs on so many threads and returns false on failure. A cold one is called with nothing of what it reads in
// the caches.
struct measure_call {
    std::string name;
    size_t threads;
    bool cold;
    std::function<bool()> call;
    size_t turn = 0, turns = 1; // it is timed in repetitions turn, turn + turns, …
    std::string alike = "";     // calls with the same text here that is not "" are made equally often
};

// "measuring 12/245 ffn/avx512/4096", in place, on a terminal only.
class measure_progress
{
  public:
    explicit measure_progress(size_t total);
    void show(const std::string &name);
    void note(const char *text) const;
    void clear() const;

  private:
    const bool terminal_;
    size_t done_ = 0;
    const size_t total_;
};

// Memory that is larger than all caches: reading it leaves nothing else in them.
class measure_cache_sweep
{
  public:
    explicit measure_cache_sweep(size_t bytes) : memory_(bytes / sizeof(uint64_t), 1) {}
    void operator()() const;

  private:
    std::vector<uint64_t> memory_;
};

// A fact that stands beside the times in the output.
void measure_note(const std::string &key, const std::string &value);

// Notes the limits of this core, measured now, if the job wants them.
void measure_add_limits(const measure_timing_job &job);

// Times all calls in each repetition, in an order of its own if the job wants it drawn, and writes the file `out`.
void measure_run(const measure_timing_job &job, const std::vector<measure_call> &calls, const char *out);

#endif
