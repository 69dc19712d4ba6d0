// The Lua module `measure`: Google Benchmark times slices of prepared calls in the order that Lua chooses.
//
// measure.slices(list) -> { { cpu, wall, whole } … }: seconds of one call, and of all that a cold one takes, of each slice { call, name,
// iterations, threads, cold, warm, pause, tokens, repetition }, in the order of the list, or nil and the name of one whose call failed.
// call: a prepared call, which as many threads make at a time as it has callers; threads: those that it starts itself, all of whose CPU
// time counts; cold: the caches are emptied before each call; warm: one call before that is not timed; pause: half a millisecond before,
// after which other work lets us run at once; tokens: of a call, for the raw file; repetition: its number there.
//
// measure.sweep(bytes): how much memory is read to empty the caches.
//
// measure.raw(path, { key = text }) -> whether it could be opened: from now on slices with a repetition also go into a file as Google
// Benchmark writes it, whose context has these facts. measure.finish() -> whether it could be written: ends it.
//
// A slice is a benchmark with a fixed number of iterations. The library has the loop, the clocks and the threads; the order, and what
// repeats, are ours: its own interleaving has no seed and splits pairs.
#include "harness/base/clock.h"
#include "harness/base/prepared.h"
#include "harness/measure/modules.h"

#include <benchmark/benchmark.h>
#include <lua.hpp>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace
{

struct slice {
    prepared_call *call;
    std::string name;
    lua_Integer iterations, repetition, tokens;
    bool threaded, cold, warm, pause;
};

struct times {
    double cpu, wall, whole;
};

// All that lives across calls of Lua, whose errors skip destructors, is static.
std::vector<slice> slices;        // those that run now
std::vector<times> results;       // of each of them
std::string failed;               // the name of one
std::vector<std::uint64_t> swept; // larger than all caches: reading it leaves nothing else in them

// Times each call alone by our own clocks: the library's CPU time has the sweeps in it.
bool run_cold(benchmark::State &state, const slice &s, std::size_t caller)
{
    bool good = true;
    double cpu = 0.0;
    const double first = seconds_now();
    for (auto _ : state) {
        for (std::size_t i = 0; i < swept.size(); i += 64 / sizeof(swept[0])) {
            benchmark::DoNotOptimize(swept[i]);
        }
        const double cpu_start = thread_seconds_now(), start = seconds_now();
        good = prepared_run(s.call, caller) && good;
        state.SetIterationTime(seconds_now() - start);
        cpu += thread_seconds_now() - cpu_start;
    }
    state.counters["cpu_seconds"] = cpu;
    state.counters["whole_seconds"] = seconds_now() - first;
    return good;
}

void run_slice(benchmark::State &state, const slice &s)
{
    const auto caller = static_cast<std::size_t>(state.thread_index());
    if (s.pause) {
        const timespec pause = {0, 500000};
        nanosleep(&pause, nullptr);
    }
    bool good = !s.warm || prepared_run(s.call, caller); // brings weights and code into the caches that others used meanwhile
    if (s.cold) {
        good = run_cold(state, s, caller) && good;
    } else {
        for (auto _ : state) {
            good = prepared_run(s.call, caller) && good;
        }
    }
    if (s.tokens > 0) {
        state.counters["tokens_per_second"] =
            benchmark::Counter(static_cast<double>(s.tokens), benchmark::Counter::kIsIterationInvariantRate);
    }
    if (!good) {
        state.SkipWithError("the library reports an error");
    }
}

// Keeps what Lua asks for, and writes the raw file through the library's own reporter, one for all rounds.
class reporter : public benchmark::BenchmarkReporter
{
  public:
    bool open(const char *path)
    {
        file_.open(path);
        json_ = std::make_unique<benchmark::JSONReporter>();
        json_->SetOutputStream(&file_);
        json_->SetErrorStream(&file_);
        return file_.good();
    }
    bool close()
    {
        json_->Finalize();
        json_.reset();
        file_.close();
        return file_.good();
    }
    bool ReportContext(const Context &context) override
    {
        if (json_ && !begun_) {
            begun_ = json_->ReportContext(context);
        }
        return true;
    }
    void ReportRuns(const std::vector<Run> &runs) override
    {
        const slice &s = slices[results.size()];
        Run run = runs.front();
        if (run.error_occurred) {
            failed = s.name;
        }
        double whole = 0.0;
        if (s.cold) {
            run.cpu_accumulated_time = run.counters["cpu_seconds"].value;
            whole = run.counters["whole_seconds"].value;
            run.counters.clear();
        }
        const auto count = static_cast<double>(s.iterations);
        results.push_back({run.cpu_accumulated_time / count, run.real_accumulated_time / count, whole});
        run.run_name = benchmark::BenchmarkName(); // iterations differ from run to run: compare.py goes by names
        run.run_name.function_name = s.name;
        run.repetition_index = s.repetition;
        if (json_ && s.repetition >= 0) {
            json_->ReportRuns({run});
        }
    }

  private:
    std::ofstream file_;
    std::unique_ptr<benchmark::JSONReporter> json_;
    bool begun_ = false;
};

reporter report;

// The fields of the table on top of the stack.
lua_Integer integer_in(lua_State *L, const char *name, lua_Integer otherwise)
{
    lua_getfield(L, -1, name);
    const lua_Integer value = luaL_optinteger(L, -1, otherwise);
    lua_pop(L, 1);
    return value;
}

bool flag_in(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    const bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

void add_slice(lua_State *L)
{
    lua_getfield(L, -1, "call");
    lua_getfield(L, -2, "name");
    prepared_call *call = prepared_at(L, -2);
    const char *name = luaL_checkstring(L, -1);
    lua_pop(L, 2); // the table keeps them
    slices.push_back({call, name, integer_in(L, "iterations", 1), integer_in(L, "repetition", -1), integer_in(L, "tokens", 0),
                      integer_in(L, "threads", 1) > 1, flag_in(L, "cold"), flag_in(L, "warm"), flag_in(L, "pause")});
}

void register_slice(const slice &s)
{
    auto *made = benchmark::RegisterBenchmark(s.name.c_str(), [&s](benchmark::State &state) { run_slice(state, s); });
    const auto callers = static_cast<int>(prepared_callers(s.call));
    made->Iterations(s.iterations)->Threads(callers);
    if (s.cold) {
        made->UseManualTime();
    } else if (s.threaded || callers > 1) {
        made->MeasureProcessCPUTime()->UseRealTime();
    }
}

int time_slices(lua_State *L)
{
    slices.clear();
    results.clear();
    for (lua_Integer i = 1, count = luaL_len(L, 1); i <= count; ++i) {
        lua_rawgeti(L, 1, i);
        add_slice(L);
        lua_pop(L, 1);
    }
    benchmark::ClearRegisteredBenchmarks();
    for (const slice &s : slices) {
        register_slice(s);
    }
    benchmark::RunSpecifiedBenchmarks(&report);
    if (!failed.empty()) {
        lua_pushnil(L);
        lua_pushstring(L, failed.c_str());
        return 2;
    }
    lua_createtable(L, static_cast<int>(results.size()), 0);
    for (std::size_t i = 0; i < results.size(); ++i) {
        lua_createtable(L, 0, 3);
        if (slices[i].cold) {
            lua_pushnumber(L, results[i].whole);
            lua_setfield(L, -2, "whole");
        }
        lua_pushnumber(L, results[i].cpu);
        lua_setfield(L, -2, "cpu");
        lua_pushnumber(L, results[i].wall);
        lua_setfield(L, -2, "wall");
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    return 1;
}

int sweep(lua_State *L)
{
    swept.assign(static_cast<std::size_t>(luaL_checkinteger(L, 1)) / sizeof(swept[0]), 1);
    return 0;
}

int open_raw(lua_State *L)
{
    for (lua_pushnil(L); lua_next(L, 2) != 0; lua_pop(L, 1)) {
        benchmark::AddCustomContext(luaL_checkstring(L, -2), luaL_checkstring(L, -1));
    }
    lua_pushboolean(L, report.open(luaL_checkstring(L, 1)));
    return 1;
}

int finish(lua_State *L)
{
    lua_pushboolean(L, report.close());
    return 1;
}

} // namespace

int luaopen_measure(lua_State *L)
{
    // What BENCHMARK_FILTER and other variables of the environment say is for programs that people run.
    static const char *options[] = {"lookupc-measure",
                                    "--benchmark_filter=.",
                                    "--benchmark_out=",
                                    "--benchmark_repetitions=1",
                                    "--benchmark_enable_random_interleaving=false",
                                    "--benchmark_list_tests=false"};
    int count = sizeof(options) / sizeof(*options);
    benchmark::Initialize(&count, const_cast<char **>(options));
    static const luaL_Reg functions[] = {
        {"slices", time_slices}, {"sweep", sweep}, {"raw", open_raw}, {"finish", finish}, {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}
