/* Seeded near-normal numbers for inputs and weights whose values do not matter but must not be zero. */
#ifndef LOOKUPC_MEASURE_RANDOM_H
#define LOOKUPC_MEASURE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills values[count] with mean 0 and the given standard deviation: sums of four uniform numbers, never exactly zero.
   The same seed gives the same values everywhere. Cannot fail. */
void measure_random_fill(float *values, size_t count, uint64_t seed, float deviation);

#ifdef __cplusplus
}
#endif

#endif
