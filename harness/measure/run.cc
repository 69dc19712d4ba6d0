// Times calls: those of the same kind in slices of a few milliseconds that take turns, so that whatever else goes on meets all of them
// alike.
//
// A repetition of a call is one slice or several; then its time is their lower quartile. Slices of all calls of a kind rotate: forward,
// backward, forward … One of several in which the core was taken by other work, so that its CPU time is short of the wall time, is timed
// again, once.
#include <jansson.h>
#include <sched.h>

#include <algorithm>
#include <map>

#include "gen/weights/random.h"
#include "harness/base/clock.h"
#include "harness/measure/quartile.h"
#include "harness/measure/timing.hh"

namespace
{

const double program_start = seconds_now();
std::map<std::string, std::string> notes;
constexpr double own_share = 0.97; // of wall time: less, and other work had the core
constexpr size_t many_calls = 16;  // in a slice of so many, of several, an untimed call before them costs little

struct times {
    double cpu, wall; // seconds of a call
};

// The calls of one kind that a repetition times, and how.
struct kind {
    std::vector<const measure_call *> calls;
    size_t slices, calls_of_slice;
};

class slicer
{
  public:
    slicer(const measure_timing_job &job, bool any_cold)
        : job_(job), random_(random_seed(job.order_seed)), sweep_(any_cold ? job.sweep_bytes : 0)
    {
    }

    // Slices of about the seconds that the job says: fewer where a call takes longer.
    void plan(kind *one)
    {
        const measure_call &first = *one->calls.front();
        double start = seconds_now();
        timed(first, 1);
        one->slices = one->calls_of_slice = 1;
        if (seconds_now() - start >= job_.min_time) {
            return;
        }
        start = seconds_now();
        size_t made = 0;
        for (size_t more = 1; seconds_now() - start < job_.min_time / 8; more *= 2) {
            timed(first, more);
            made += more;
        }
        const double calls = job_.min_time / (seconds_now() - start) * static_cast<double>(made);
        one->slices = std::clamp<size_t>(static_cast<size_t>(calls + 0.5), 1, std::max<size_t>(job_.slices, 1));
        one->calls_of_slice = std::max<size_t>(1, static_cast<size_t>(calls / static_cast<double>(one->slices) + 0.5));
    }

    // The times of one repetition of the calls of a kind, in their order.
    std::vector<times> repeat(const kind &one)
    {
        const size_t count = one.calls.size();
        std::vector<std::vector<double>> cpu(count), wall(count);
        std::vector<size_t> order(count);
        for (size_t i = 0; i < count; ++i) {
            order[i] = i;
        }
        shuffle(&order);
        for (size_t slice = 0; slice < one.slices; ++slice) {
            for (size_t place = 0; place < count; ++place) {
                const size_t i = order[slice % 2 == 0 ? place : count - 1 - place];
                const times found = one.slices > 1 ? calm(*one.calls[i], one.calls_of_slice) : timed(*one.calls[i], one.calls_of_slice);
                cpu[i].push_back(found.cpu);
                wall[i].push_back(found.wall);
            }
        }
        std::vector<times> result(count);
        for (size_t i = 0; i < count; ++i) {
            result[i] = {measure_lower_quartile(cpu[i].data(), cpu[i].size()), measure_lower_quartile(wall[i].data(), wall[i].size())};
        }
        return result;
    }

    template <typename entry> void shuffle(std::vector<entry> *order)
    {
        for (size_t left = order->size(); job_.draw_order && left > 1; --left) {
            std::swap((*order)[left - 1], (*order)[random_bits(&random_) % left]);
        }
    }

    const std::string &failed() const
    {
        return failed_;
    }

  private:
    // One slice; if the core was taken, once more: after a pause other work lets us run at once.
    times calm(const measure_call &call, size_t calls)
    {
        const times first = timed(call, calls);
        if (call.threads > 1 || first.cpu >= own_share * first.wall) {
            return first;
        }
        const timespec pause = {0, 500000};
        nanosleep(&pause, nullptr);
        const times second = timed(call, calls);
        return second.cpu * first.wall >= first.cpu * second.wall ? second : first;
    }

    times timed(const measure_call &call, size_t calls)
    {
        bool good = true;
        times sum = {0.0, 0.0};
        if (!call.cold && calls >= (job_.slices > 0 ? many_calls : 2)) {
            good &= call.call(); // brings weights and code into the caches that others used meanwhile
        }
        for (size_t done = 0; done < calls;) {
            const size_t together = call.cold ? 1 : calls;
            if (call.cold) {
                sweep_();
            }
            const double cpu = cpu_now(call), wall = seconds_now();
            for (size_t i = 0; i < together; ++i) {
                good &= call.call();
            }
            sum.wall += seconds_now() - wall;
            sum.cpu += cpu_now(call) - cpu;
            done += together;
        }
        if (!good && failed_.empty()) {
            failed_ = call.name;
        }
        return {sum.cpu / static_cast<double>(calls), sum.wall / static_cast<double>(calls)};
    }

    // CPU time of all threads that the call has.
    static double cpu_now(const measure_call &call)
    {
        if (call.threads == 1) {
            return thread_seconds_now();
        }
        timespec now;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    }

    const measure_timing_job &job_;
    random_state random_;
    measure_cache_sweep sweep_;
    std::string failed_;
};

void write(double seconds, json_t *samples, const char *out)
{
    measure_note("timed_seconds", std::to_string(seconds));
    measure_note("whole_seconds", std::to_string(seconds_now() - program_start));
    json_t *context = json_object();
    for (const auto &[key, value] : notes) {
        json_object_set_new(context, key.c_str(), json_string(value.c_str()));
    }
    json_t *root = json_pack("{s:o, s:o}", "context", context, "samples", samples);
    if (!root || json_dump_file(root, out, JSON_COMPACT) != 0) {
        measure_fail("%s: could not be written", out);
    }
    json_decref(root);
}

} // namespace

void measure_note(const std::string &key, const std::string &value)
{
    notes[key] = value;
}

void measure_run(const measure_timing_job &job, const std::vector<measure_call> &calls, const char *out)
{
    const bool any_cold = std::any_of(calls.begin(), calls.end(), [](const measure_call &call) { return call.cold; });
    slicer slices(job, any_cold);
    std::vector<kind> kinds;
    std::map<std::string, size_t> places;
    for (const measure_call &call : calls) {
        const std::string name = call.alike.empty() ? call.name : call.alike;
        const auto [place, fresh] = places.try_emplace(name, kinds.size());
        if (fresh) {
            kinds.emplace_back();
        }
        kinds[place->second].calls.push_back(&call);
    }
    for (kind &one : kinds) {
        slices.plan(&one);
    }
    json_t *samples = json_array();
    const double start = seconds_now();
    measure_progress shown(kinds.size() * job.repetitions);
    for (size_t repetition = 0; repetition < job.repetitions; ++repetition) {
        std::vector<const kind *> order;
        for (const kind &one : kinds) {
            const measure_call &first = *one.calls.front();
            if (repetition % first.turns == first.turn) {
                order.push_back(&one);
            }
        }
        slices.shuffle(&order);
        for (const kind *one : order) {
            shown.show(one->calls.front()->name);
            const std::vector<times> found = slices.repeat(*one);
            for (size_t i = 0; i < found.size(); ++i) {
                json_array_append_new(samples, json_pack("{s:s, s:f, s:f}", "name", one->calls[i]->name.c_str(), "cpu_us",
                                                         1e6 * found[i].cpu, "wall_us", 1e6 * found[i].wall));
            }
        }
    }
    shown.clear();
    if (!slices.failed().empty()) {
        measure_fail("%s: the library reports an error", slices.failed().c_str());
    }
    write(seconds_now() - start, samples, out);
}
