// The measuring process: times compiled code and its baselines, interleaved.
// Usage: lookupc-measure JOB.json OUT.json PARENT, where PARENT is the process that starts it; what a job says: rows.hh, baselines.hh and
// timing.hh. OUT.json is complete when the exit status is 0; its times are of one call of a whole batch. Of what runs on several threads
// wall time counts, and CPU time is that of all threads together; else CPU time counts. OpenBLAS reads OPENBLAS_CORETYPE when it is loaded:
// the parent sets it.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "harness/base/parent.h"
#include "harness/measure/baselines.hh"

int main(int argc, char **argv)
{
    if (argc != 4) {
        std::fputs("usage: lookupc-measure JOB.json OUT.json PARENT\n", stderr);
        return 2;
    }
    end_with_parent(static_cast<pid_t>(std::atoi(argv[3]))); // nobody else wants the result, and others wait for this machine
    const measure_object job(argv[1]);
    std::FILE *out = std::fopen(argv[2], "w");
    if (!out) {
        measure_fail("%s: %s", argv[2], std::strerror(errno));
    }
    std::fclose(out);
    const measure_timing_job timing(job);
    measure_add_limits(timing);
    const measure_workshop shop(job, timing);
    std::vector<measure_call> calls;
    std::set<std::string> names;
    for (const measure_object &row : job.objects("calls")) {
        calls.push_back(shop.call(row));
        if (!names.insert(calls.back().name).second) {
            measure_fail("%s: calls: %s: must not repeat a name", argv[1], calls.back().name.c_str());
        }
    }
    measure_add_dense(job, timing, shop, &calls);
    measure_add_products(job, timing, shop, &calls);
    measure_run(timing, calls, argv[2]);
    return 0;
}
