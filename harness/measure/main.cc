// The measuring process: times compiled code and its baselines, interleaved.
// Usage: lookupc-measure JOB.json OUT.json PARENT, where PARENT is the process that starts it. A job with `transformers` is of blocks, one
// with `wholes` of whole models, else of LookupFFNs. OUT.json is complete when the exit status is 0; its times are of one call of a whole
// batch. Of what runs on several threads real_time counts, and cpu_time is that of all threads together; of calls with cold tables
// real_time counts, which is CPU time on one thread; else cpu_time counts. OpenBLAS reads OPENBLAS_CORETYPE when it is loaded: the parent
// sets it.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness/base/parent.h"
#include "harness/measure/lookup.hh"
#include "harness/measure/transformer.hh"
#include "harness/measure/whole.hh"

int main(int argc, char **argv)
{
    if (argc != 4) {
        std::fputs("usage: lookupc-measure JOB.json OUT.json PARENT\n", stderr);
        return 2;
    }
    end_with_parent(static_cast<pid_t>(std::atoi(argv[3]))); // nobody else wants the result, and others wait for this machine
    char error[512];
    measure_reader in = {argv[1], error, sizeof(error), ""};
    const json_t *root = measure_load(&in);
    if (!root) {
        measure_fail("%s", error);
    }
    std::FILE *out = std::fopen(argv[2], "w");
    if (!out) {
        measure_fail("%s: %s", argv[2], std::strerror(errno));
    }
    std::fclose(out);
    (json_object_get(root, "transformers") ? measure_time_transformer
     : json_object_get(root, "wholes")     ? measure_time_whole
                                           : measure_time_ffn)(&in, root, argv[2]);
    return 0;
}
