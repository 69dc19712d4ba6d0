/* Seeded random numbers; see random.h. */
#include "gen/weights/random.h"

random_state random_seed(uint64_t seed)
{
    return (random_state){seed};
}

uint64_t random_bits(random_state *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double random_uniform(random_state *random)
{
    return ((double)(random_bits(random) >> 11) + 0.5) * 0x1p-53;
}

double random_normal(random_state *random)
{
    double sum = -2;
    for (int i = 0; i < 4; ++i)
        sum += random_uniform(random);
    return sum * 1.7320508075688772; /* the sum's variance is 4/12 */
}

void random_fill(random_state *random, float *values, size_t count, double mean, double deviation)
{
    for (size_t i = 0; i < count; ++i)
        values[i] = (float)(mean + deviation * random_normal(random));
}
