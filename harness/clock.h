/* Time that only goes forward. */
#ifndef LOOKUPC_HARNESS_CLOCK_H
#define LOOKUPC_HARNESS_CLOCK_H

#include <time.h>

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
