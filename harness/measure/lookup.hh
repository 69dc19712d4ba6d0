// Timing of LookupFFNs in the measuring process.
#ifndef LOOKUPC_MEASURE_FFN_HH
#define LOOKUPC_MEASURE_FFN_HH

#include "harness/measure/lookup_job.h"
#include "harness/measure/timing.hh"

// Does the job in root, from the file reader->path, and writes the file `out`. Ends the process with one line on failure.
void measure_time_ffn(measure_reader *reader, const json_t *root, const char *out);

#endif
