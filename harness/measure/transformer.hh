// Timing of transformers' blocks in the measuring process.
#ifndef LOOKUPC_MEASURE_BLOCKS_HH
#define LOOKUPC_MEASURE_BLOCKS_HH

#include "harness/measure/timing.hh"
#include "harness/measure/transformer_job.h"

// Does the job in root, from the file reader->path, and writes the file `out`. Ends the process with one line on failure.
void measure_time_transformer(measure_reader *reader, const json_t *root, const char *out);

#endif
