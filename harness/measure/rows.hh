// Memory, libraries and calls of compiled code, as a job of the measuring process describes them.
//
// memory     { name; bytes; fill: absent (zeros), "normal", "skewed" (tokens of `width` floats such as text has), "units" (int16),
//            "ids" (int32 below `below`), "sizes" (size_t: the list `sizes`); large: whether it asks for large pages; copies: each
//            caller has one of them }
// libraries  { name, library, blob (paths), bind, weights_struct_bytes; weights_of: the name of one whose weights it has, too: to read a
//            large blob again would take longer than the timing }
// setup      rows that are made once, by each caller
// calls      rows that are timed: { name; steps; places; threads (1 if absent); callers at a time (1); cold; turn, turns; alike }: see
//            measure_call
//
// A step of a row is a call of a function, of rows.cc or of the library of that name: { library, function, status (whether it returns one,
// 0 for success), arguments }; for `tokens` tokens, `chunk` at a time, if it has these fields. An argument is an integer, the name of a
// memory, "weights", "blob", "tokens" (those of this time), or { memory; at, place, token: bytes behind its beginning, times 1, the number
// of the place, the first token; value: the int32 there }. A row walks through its places, so that a call does not find what it has just
// seen in the caches: the next call is at the next one, that of the next caller, and in the end at the first again.
#ifndef LOOKUPC_MEASURE_ROWS_HH
#define LOOKUPC_MEASURE_ROWS_HH

#include <map>

#include "gen/host/files.h"
#include "harness/base/library.h"
#include "harness/measure/timing.hh"

// So many normal numbers. Those of large memory repeat: only their making would take long.
void measure_random(float *numbers, size_t count, uint64_t seed, double deviation);

// Lets so many callers, numbered from 0, call at a time; whether all calls went well.
bool measure_together(size_t callers, const std::function<bool(size_t)> &one);

// Everything is made, touched and, where it is written once, written before the first call is timed. It lives until the process ends.
class measure_workshop
{
  public:
    measure_workshop(const measure_object &job, const measure_timing_job &timing);

    measure_call call(const measure_object &row) const;

    // A memory's copy for the caller.
    unsigned char *memory(const char *name, size_t number = 0) const;
    size_t bytes(const char *name) const;

  private:
    struct buffer {
        size_t bytes;
        std::vector<unsigned char *> copies;
    };
    struct loaded {
        loaded_library functions;
        const files_mapping *blob;
        void *weights;
    };
    class caller; // what one caller does again and again

    void make_memory(const measure_object &row, uint64_t seed);
    void load(const measure_object &row);
    std::vector<caller> callers(const measure_object &row) const;
    void add_step(const measure_object &step, size_t number, caller *to) const;
    void add_argument(const measure_object &step, const json_t *argument, const loaded *own, size_t number, size_t first, size_t tokens,
                      caller *to) const;

    std::map<std::string, buffer> memory_;
    std::map<std::string, loaded> libraries_;
    std::map<std::string, files_mapping> blobs_;
};

#endif
