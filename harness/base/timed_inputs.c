/* What timed calls read, here and on a device: random numbers such as activations are. */
#include "harness/base/timed_inputs.h"

#include "harness/base/memory.h"

#include <math.h>

void inputs_normal(float *numbers, size_t count, random_state random, double deviation)
{
    const size_t period = (1 << 20) - 7;
    random_fill(&random, numbers, smaller(count, period), 0.0, deviation);
    for (size_t done = period; done < count; done += period)
        memcpy(numbers + done, numbers, smaller(period, count - done) * sizeof *numbers);
}

void inputs_units(int16_t *units, size_t count, random_state random)
{
    for (size_t i = 0; i < count; ++i)
        units[i] = (int16_t)fmin(fmax(4096.0 * random_normal(&random), -32768.0), 32767.0);
}

void inputs_ids(int32_t *ids, size_t count, random_state random, size_t below)
{
    for (size_t i = 0; i < count; ++i)
        ids[i] = (int32_t)(random_bits(&random) % below);
}

/* The k-th most frequent kind is k times rarer than the first: Zipf's law. */
void inputs_skewed(float *numbers, size_t count, size_t width, random_state random, float *kinds)
{
    const double difference = 0.1;
    random_fill(&random, kinds, INPUTS_KINDS * width, 0.0, 1.0);
    random_fill(&random, numbers, count, 0.0, difference);
    for (size_t at = 0; at + width <= count; at += width) {
        const size_t place = (size_t)exp(random_uniform(&random) * log((double)INPUTS_KINDS));
        const float *from = kinds + (smaller(place, INPUTS_KINDS) - 1) * width;
        for (size_t i = 0; i < width; ++i)
            numbers[at + i] += from[i];
    }
}
