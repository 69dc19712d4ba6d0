/* Watches the other ranks of this machine: a pidfd of each, and a flag that a rank sets before it ends as it should; see watch.h. */
#include "harness/train/mpi/watch.h"

#include <mpi.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LONGEST_WORDS = 8192,
    BETWEEN_LOOKS = 50 /* ms */
};

/* What ranks tell each other. */
typedef struct {
    unsigned long long number, process, space; /* space: of process numbers */
} person;

static struct {
    size_t number, count; /* of this rank among all; of ranks on this machine */
    person *persons;      /* by number */
    struct pollfd *ends;  /* of the processes, -1: not watched; and last the pipe that ends the thread */
    atomic_int **leaves;  /* of each: whether it ends as it should */
    MPI_Comm machine;
    MPI_Win flags;
    int stop[2];
    pthread_t thread;
    bool runs;
    double patience; /* seconds from SIGTERM until mpirun kills */
    char words[LONGEST_WORDS];
} all;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* of words */

static void say(const char *what)
{
    static char line[LONGEST_WORDS + 256];
    pthread_mutex_lock(&gate);
    const int length = snprintf(line, sizeof line, "lookupc: %s; %s\n", what, all.words);
    const ssize_t wrote = write(STDERR_FILENO, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    pthread_mutex_unlock(&gate);
    (void)wrote; /* nobody listens */
}

/* Ends this process by SIGTERM, whose handler removes temporary files. */
_Noreturn static void end_silently(void)
{
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &term, NULL);
    raise(SIGTERM);
    _exit(1); /* where it is ignored */
}

_Noreturn void watch_end(const char *what)
{
    say(what);
    end_silently();
}

/* Ends this process if another one of this machine has died. The first of those that live says which. */
static void look(void)
{
    const size_t nobody = all.count;
    size_t dead = nobody, first = nobody;
    bool should = false;
    for (size_t i = 0; i < all.count; ++i) {
        if (all.ends[i].revents == 0) {
            first = first == nobody ? i : first;
            continue;
        }
        if (atomic_load(all.leaves[i]))
            should = true;
        else if (dead == nobody)
            dead = i;
    }
    if (dead != nobody && !should && all.persons[first].number == all.number) {
        char what[64];
        snprintf(what, sizeof what, "rank %llu died", all.persons[dead].number);
        watch_end(what);
    }
    if (dead != nobody || should)
        end_silently();
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool terminated(void)
{
    sigset_t waiting;
    return sigpending(&waiting) == 0 && sigismember(&waiting, SIGTERM) == 1;
}

static void *watch(void *nothing)
{
    double since = 0;
    bool said = all.number != 0; /* one is enough */
    for (;;) {
        const int events = poll(all.ends, all.count + 1, BETWEEN_LOOKS);
        if (events > 0 && all.ends[all.count].revents)
            return nothing;
        if (events > 0)
            look();
        if (since == 0 && terminated())
            since = now();
        if (!said && since > 0 && now() - since > 0.8 * all.patience) {
            char what[192];
            snprintf(what, sizeof what, "interrupted, but the step and its checkpoint take longer than the %g s that mpirun leaves, %s",
                     all.patience, "the N of its --mca odls_base_sigkill_timeout N");
            say(what);
            said = true;
        }
    }
}

void watch_words(const char *words)
{
    pthread_mutex_lock(&gate);
    snprintf(all.words, sizeof all.words, "%s", words);
    pthread_mutex_unlock(&gate);
}

/* Finds the ranks of this machine. */
static bool meet(void)
{
    int count, place;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, (int)all.number, MPI_INFO_NULL, &all.machine);
    MPI_Comm_size(all.machine, &count);
    MPI_Comm_rank(all.machine, &place);
    all.count = (size_t)count;
    all.persons = calloc(all.count, sizeof *all.persons);
    all.ends = calloc(all.count + 1, sizeof *all.ends);
    all.leaves = calloc(all.count, sizeof *all.leaves);
    if (!all.persons || !all.ends || !all.leaves)
        return false;
    struct stat space = {0};
    stat("/proc/self/ns/pid", &space);
    person own = {all.number, (unsigned long long)getpid(), space.st_ino};
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all.persons, sizeof own, MPI_BYTE, all.machine);
    void *memory;
    MPI_Win_allocate_shared(sizeof(atomic_int), sizeof(atomic_int), MPI_INFO_NULL, all.machine, &memory, &all.flags);
    for (size_t i = 0; i < all.count; ++i) {
        MPI_Aint size;
        int unit;
        MPI_Win_shared_query(all.flags, (int)i, &size, &unit, &all.leaves[i]);
        const bool other = i != (size_t)place && all.persons[i].space == own.space;
        all.ends[i] = (struct pollfd){.fd = other ? pidfd_open((pid_t)all.persons[i].process, 0) : -1, .events = POLLIN};
    }
    atomic_store(all.leaves[place], 0);
    MPI_Barrier(all.machine);
    all.ends[all.count] = (struct pollfd){.fd = all.stop[0], .events = POLLIN};
    return true;
}

bool watch_start(size_t number)
{
    const char *patience = getenv("OMPI_MCA_odls_base_sigkill_timeout");
    all.number = number;
    all.patience = patience && atof(patience) > 0 ? atof(patience) : 1;
    watch_words("there is no checkpoint yet");
    if (pipe(all.stop) != 0 || !meet())
        return false;
    sigset_t term, before;
    sigfillset(&term);
    pthread_sigmask(SIG_SETMASK, &term, &before);
    all.runs = pthread_create(&all.thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return all.runs;
}

void watch_stop(void)
{
    if (!all.runs)
        return;
    for (size_t i = 0; i < all.count; ++i)
        if (all.persons[i].number == all.number)
            atomic_store(all.leaves[i], 1);
    all.runs = false;
    if (write(all.stop[1], "", 1) == 1)
        pthread_join(all.thread, NULL);
}

void watch_free(void)
{
    MPI_Win_free(&all.flags);
    for (size_t i = 0; i < all.count; ++i)
        if (all.ends[i].fd >= 0)
            close(all.ends[i].fd);
    close(all.stop[0]);
    close(all.stop[1]);
    free(all.persons);
    free(all.ends);
    free(all.leaves);
    memset(&all, 0, sizeof all);
}
