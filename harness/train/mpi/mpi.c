/* The ranks that mpirun started, as harness/train/ranks.h wants them: a module of its own, so that lookupc needs no MPI. */
#include "harness/train/mpi/watch.h"
#include "harness/train/ranks.h"

#include <mpi.h>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const ranks *lookupc_join_ranks(void);

static ranks joined;

/* Says that this rank has no memory left, and ends all. */
static void give_up(void)
{
    watch_stop();
    fprintf(stderr, "lookupc: rank %zu has not enough memory\n", joined.number);
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

/* A message for each rank, in pieces whose sizes are ints. */
static unsigned char *trade(const void *mine, const size_t *sizes_to, size_t *sizes_from)
{
    unsigned long long *sizes = malloc(2 * joined.count * sizeof *sizes), *from_others = sizes + joined.count;
    if (!sizes)
        give_up();
    for (size_t i = 0; i < joined.count; ++i)
        sizes[i] = sizes_to[i];
    MPI_Alltoall(sizes, 1, MPI_UNSIGNED_LONG_LONG, from_others, 1, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
    size_t total = 0;
    for (size_t i = 0; i < joined.count; ++i)
        total += sizes_from[i] = (size_t)from_others[i];
    free(sizes);
    unsigned char *all = malloc(total + 1);
    if (!all)
        give_up();
    /* In round k this rank sends to the k-th behind it and receives from the k-th before it. */
    for (size_t k = 0; k < joined.count; ++k) {
        const size_t to = (joined.number + k) % joined.count, from = (joined.number + joined.count - k) % joined.count;
        size_t sent = 0, received = 0;
        for (size_t i = 0; i < to; ++i)
            sent += sizes_to[i];
        for (size_t i = 0; i < from; ++i)
            received += sizes_from[i];
        for (size_t done = 0; done < sizes_to[to] || done < sizes_from[from]; done += INT_MAX) {
            const size_t out = done < sizes_to[to] ? sizes_to[to] - done : 0, in = done < sizes_from[from] ? sizes_from[from] - done : 0;
            MPI_Request arrives = MPI_REQUEST_NULL;
            if (in)
                MPI_Irecv(all + received + done, (int)(in < INT_MAX ? in : INT_MAX), MPI_BYTE, (int)from, 0, MPI_COMM_WORLD, &arrives);
            if (out)
                MPI_Send((const char *)mine + sent + done, (int)(out < INT_MAX ? out : INT_MAX), MPI_BYTE, (int)to, 0, MPI_COMM_WORLD);
            MPI_Wait(&arrives, MPI_STATUS_IGNORE);
        }
    }
    return all;
}

static unsigned char *gather(const void *mine, size_t bytes, size_t *sizes)
{
    const unsigned long long own = bytes;
    unsigned long long *all_sizes = malloc(joined.count * sizeof *all_sizes);
    int *counts = malloc(2 * joined.count * sizeof *counts), *places = counts + joined.count;
    if (!all_sizes || !counts)
        give_up();
    MPI_Allgather(&own, 1, MPI_UNSIGNED_LONG_LONG, all_sizes, 1, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
    size_t total = 0;
    for (size_t i = 0; i < joined.count; ++i) {
        sizes[i] = (size_t)all_sizes[i];
        places[i] = (int)(total < INT_MAX ? total : INT_MAX);
        counts[i] = (int)(sizes[i] < INT_MAX ? sizes[i] : INT_MAX);
        total += sizes[i];
    }
    unsigned char *all = malloc(total + 1);
    if (!all)
        give_up();
    if (total < INT_MAX)
        MPI_Allgatherv(mine, (int)bytes, MPI_BYTE, all, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    for (size_t i = 0, at = 0; total >= INT_MAX && i < joined.count; at += sizes[i++]) { /* counts of MPI are ints */
        if (i == joined.number)
            memcpy(all + at, mine, bytes);
        for (size_t done = 0; done < sizes[i]; done += INT_MAX) {
            const size_t left = sizes[i] - done;
            MPI_Bcast(all + at + done, (int)(left < INT_MAX ? left : INT_MAX), MPI_BYTE, (int)i, MPI_COMM_WORLD);
        }
    }
    free(all_sizes);
    free(counts);
    return all;
}

/* Instead of the lines that MPI prints. */
static void end_by_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    int length;
    char what[MPI_MAX_ERROR_STRING + 64], reason[MPI_MAX_ERROR_STRING];
    MPI_Error_string(*code, reason, &length);
    snprintf(what, sizeof what, "rank %zu: MPI fails: %s", joined.number, reason);
    watch_end(what);
}

static void part(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    watch_stop();
}

static void leave(void)
{
    part();
    watch_free();
    MPI_Finalize();
}

/* The others would wait for a process that ends early. */
static void leave_no_one(void)
{
    int ended = 0;
    MPI_Finalized(&ended);
    if (ended)
        return;
    watch_stop();
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Threads of MPI would take signals that the main thread waits for. */
static void start(void)
{
    int given;
    sigset_t signals, before;
    sigfillset(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, &before);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atexit(leave_no_one);
}

const ranks *lookupc_join_ranks(void)
{
    int number, count, started = 0;
    MPI_Initialized(&started);
    if (!started)
        start();
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    joined = (ranks){
        .number = (size_t)number,
        .count = (size_t)count,
        .sum = sum,
        .sum_doubles = sum_doubles,
        .trade = trade,
        .gather = gather,
        .words = watch_words,
        .give_up = give_up,
        .part = part,
        .leave = leave,
    };
    if (!started) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(end_by_error, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        if (!watch_start(joined.number))
            give_up();
    }
    return &joined;
}
