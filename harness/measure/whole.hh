// Times compiled whole models.
#ifndef LOOKUPC_MEASURE_WHOLE_HH
#define LOOKUPC_MEASURE_WHOLE_HH

#include "harness/measure/timing.hh"
#include "harness/measure/whole_job.h"

// Times what the job says and writes the file `out`; on failure ends the process with one line.
void measure_time_whole(measure_reader *reader, const json_t *root, const char *out);

#endif
