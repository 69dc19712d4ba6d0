/* The lower quartile of times: other work only ever makes a time longer. */
#ifndef LOOKUPC_MEASURE_QUARTILE_H
#define LOOKUPC_MEASURE_QUARTILE_H

#include <stdlib.h>

static inline int measure_by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right ? 1 : 0;
}

/* The value below which a quarter of times[count] lie, between two of them where none is there. Sorts them. count is at least 1. */
static inline double measure_lower_quartile(double *times, size_t count)
{
    qsort(times, count, sizeof *times, measure_by_value);
    const double place = (double)(count - 1) / 4.0;
    const size_t below = (size_t)place;
    return below + 1 < count ? times[below] + (place - (double)below) * (times[below + 1] - times[below]) : times[below];
}

#endif
