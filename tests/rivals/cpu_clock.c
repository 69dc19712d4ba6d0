/* Preloaded, it makes the clocks that a program times itself with those of its CPU time, which other programs do not disturb. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    const int own = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
    return (int)syscall(SYS_clock_gettime, own ? CLOCK_PROCESS_CPUTIME_ID : clock, time);
}
