/* What timed calls read, here and on a device: random numbers such as activations are. */
#ifndef LOOKUPC_HARNESS_BASE_TIMED_INPUTS_H
#define LOOKUPC_HARNESS_BASE_TIMED_INPUTS_H

#include "gen/weights/random.h"

/* Normal numbers. Those of large memory repeat: only their making would take long. */
void inputs_normal(float *numbers, size_t count, random_state random, double deviation);

/* Inputs of integer kernels. */
void inputs_units(int16_t *units, size_t count, random_state random);

/* Ids of tokens, all below `below`. */
void inputs_ids(int32_t *ids, size_t count, random_state random, size_t below);

enum { INPUTS_KINDS = 1024 };

/* Inputs such as text has: frequent tokens, each `width` numbers, come again and again, each time a little different. Works in
   kinds[INPUTS_KINDS][width]. */
void inputs_skewed(float *numbers, size_t count, size_t width, random_state random, float *kinds);

#endif
