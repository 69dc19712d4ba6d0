/* Writes a checkpoint again with its matrices and tables in integers of 8 bits, tables perhaps of 4. */
#ifndef LOOKUPC_WEIGHTS_ROUNDED_H
#define LOOKUPC_WEIGHTS_ROUNDED_H

#include "gen/weights/shards.h"

/* Writes all tensors of `checkpoint` into the safetensors file `path`: those of two dimensions and more in I8, each row, which is the last
   dimension, in units of the largest magnitude in it / 127 (NAME_scale, F32), the others in F32. halves: tables of LookupFFNs are in half
   bytes (NAME_scale_i4), rounded as for packing; false with one line for a checkpoint without any. *error_share, if not NULL, becomes the
   relative error of all that was rounded: norm of the difference / norm. False with one line that starts with a path; then no new file
   exists. The same checkpoint gives the same bytes. */
bool rounded_write(const shards *checkpoint, const char *path, bool halves, double *error_share, char *error, size_t error_size);

#endif
