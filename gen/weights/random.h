/* Seeded random numbers for weights and inputs, the same bits on every machine: no rounding depends on a library. */
#ifndef LOOKUPC_WEIGHTS_RANDOM_H
#define LOOKUPC_WEIGHTS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t state;
} random_state;

random_state random_seed(uint64_t seed);

/* 64 random bits: splitmix64. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators". */
uint64_t random_bits(random_state *random);

/* Uniform in (0, 1), a multiple of 2^-54. */
double random_uniform(random_state *random);

/* Near-normal with mean 0 and deviation 1, of size at most 2 sqrt 3: the sum of four uniform numbers. */
double random_normal(random_state *random);

/* values[count] = mean + deviation * random_normal, one after the other. */
void random_fill(random_state *random, float *values, size_t count, double mean, double deviation);

#endif
