/* The measuring process: times compiled code and its baselines, interleaved.
   Usage: lookupc-measure JOB.json OUT.json PARENT, where PARENT is the process that starts it; what a job says: buffers.h, rows.h,
   baselines.h and timing.h. OUT.json is complete when the exit status is 0; its times are of one call of a whole batch. Of what runs on
   several threads wall time counts, and CPU time is that of all threads together; else CPU time counts. OpenBLAS reads OPENBLAS_CORETYPE
   when it is loaded, and oneDNN ONEDNN_MAX_CPU_ISA: the parent sets them, and says in the job's vector_bytes, 64 if absent, how wide the
   vectors of this process' own loops may be. */
#include "harness/base/amx.h"
#include "harness/base/parent.h"
#include "harness/baseline/vectors.h"
#include "harness/measure/baselines.h"
#include "harness/measure/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: lookupc-measure JOB.json OUT.json PARENT\n", stderr);
        return 2;
    }
    end_with_parent((pid_t)atoi(argv[3])); /* nobody else wants the result, and others wait for this machine */
    amx_request();                         /* before a library or compiled code looks what it may use */
    const job_object job = job_read(argv[1]);
    vectors_limit(job_integer_or(&job, "vector_bytes", 64, 16, 64));
    FILE *out = fopen(argv[2], "w");
    if (!out) {
        job_fail("%s: %s", argv[2], strerror(errno));
    }
    fclose(out);
    timing all = timing_of(&job);
    const buffers *memory = buffers_make(&job, all.seed);
    const rows_parts *parts = rows_prepare(&job, memory);
    for (job_object row = {0}; job_next(&job, "calls", &row);) {
        timing_add(&all, rows_call(parts, &row));
    }
    baselines_add_dense(memory, &all);
    baselines_add_products(memory, &all);
    timing_run(&all, argv[2]);
    return 0;
}
