/* The reference's weights out of a checkpoint: tensors looked up by name, their shapes checked, everything in float64. */
#ifndef LOOKUPC_HARNESS_REFERENCE_CHECKPOINT_H
#define LOOKUPC_HARNESS_REFERENCE_CHECKPOINT_H

#include "harness/reference/lookup.h"

typedef struct checkpoint checkpoint;

/* Opens the weights of `model` in a safetensors file. `prefix` stands before every tensor's name ("" for none); blocks_in_out says that
   BH4's blocks are stored [b in][b out]. The tables stay in the file and are read a row at a time. Returns NULL with one line
   "path: tensor: rule". */
checkpoint *checkpoint_open(const reference_model *model, const char *path, const char *prefix, bool blocks_in_out, char *error,
                            size_t error_size);

/* NULL is allowed. */
void checkpoint_close(checkpoint *file);

/* The weights; they live as long as the checkpoint is open. */
const reference_weights *checkpoint_weights(const checkpoint *file);

#endif
