/* The ranks that mpirun started, as harness/train/ranks.h wants them: a module of its own, so that lookupc needs no MPI. */
#include "harness/train/ranks.h"

#include <mpi.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

const ranks *lookupc_join_ranks(void);

static ranks joined;

static void give_up(void)
{
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Each part of the values is summed by one rank, so that all get the same bits. */
static void sum_of(void *values, size_t count, size_t width, MPI_Datatype type)
{
    const size_t most = (size_t)1 << 26; /* counts of MPI are ints */
    for (size_t done = 0; done < count; done += most) {
        const int n = (int)(count - done < most ? count - done : most);
        char *at = (char *)values + done * width;
        int *counts = malloc(2 * joined.count * sizeof *counts), *places = counts + joined.count;
        char *part = malloc((size_t)n * width + 1);
        if (!counts || !part)
            give_up();
        for (size_t i = 0; i < joined.count; ++i) {
            places[i] = (int)((size_t)n * i / joined.count);
            counts[i] = (int)((size_t)n * (i + 1) / joined.count) - places[i];
        }
        const int own = counts[joined.number];
        MPI_Reduce_scatter(at, part, counts, type, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allgatherv(part, own, type, at, counts, places, type, MPI_COMM_WORLD);
        free(counts);
        free(part);
    }
}

static void sum(float *values, size_t count)
{
    sum_of(values, count, sizeof *values, MPI_FLOAT);
}

static void sum_doubles(double *values, size_t count)
{
    sum_of(values, count, sizeof *values, MPI_DOUBLE);
}

static unsigned char *gather(const void *mine, size_t bytes, size_t *sizes)
{
    const unsigned long long own = bytes;
    unsigned long long *all_sizes = malloc(joined.count * sizeof *all_sizes);
    if (!all_sizes)
        give_up();
    MPI_Allgather(&own, 1, MPI_UNSIGNED_LONG_LONG, all_sizes, 1, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
    size_t total = 0, largest = 0;
    for (size_t i = 0; i < joined.count; ++i) {
        sizes[i] = (size_t)all_sizes[i];
        total += sizes[i];
        largest = sizes[i] > largest ? sizes[i] : largest;
    }
    free(all_sizes);
    unsigned char *all = malloc(total + 1);
    if (!all)
        give_up();
    size_t at = 0;
    for (size_t i = 0; i < joined.count; ++i) {
        if (i == joined.number)
            memcpy(all + at, mine, bytes);
        for (size_t done = 0; done < sizes[i]; done += INT_MAX) {
            const size_t left = sizes[i] - done;
            MPI_Bcast(all + at + done, (int)(left < INT_MAX ? left : INT_MAX), MPI_BYTE, (int)i, MPI_COMM_WORLD);
        }
        at += sizes[i];
    }
    return all;
}

static void leave(void)
{
    MPI_Finalize();
}

/* The others would wait for a process that ends early. */
static void leave_no_one(void)
{
    int ended = 0;
    MPI_Finalized(&ended);
    if (!ended)
        give_up();
}

const ranks *lookupc_join_ranks(void)
{
    int number, count, given, started = 0;
    MPI_Initialized(&started);
    if (!started) {
        MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given);
        atexit(leave_no_one);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    joined = (ranks){
        .number = (size_t)number,
        .count = (size_t)count,
        .sum = sum,
        .sum_doubles = sum_doubles,
        .gather = gather,
        .give_up = give_up,
        .leave = leave,
    };
    return &joined;
}
