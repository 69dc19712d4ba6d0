/* Measures the limits of this core: fused multiply-adds, reading from each level of memory, reading random rows. */
#include "limits.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    ROUNDS = 12,       /* a multiple of the four distances of do_random_rows */
    LINE = 64,         /* bytes of a cache line; rows start on one */
    ACCUMULATORS = 12, /* covers the latency of two FMA units and leaves registers for the operands */
    PIECE = 8 * LINE,  /* what a loop over memory reads in one step */
    FMA_STEPS = 1 << 15
};

static const double round_seconds = 0.05;
static const size_t least_memory = (size_t)64 << 20, most_memory = (size_t)1 << 30;

/* The loops of one instruction set. */
typedef struct loops {
    /* Floating-point operations of one call: ACCUMULATORS independent chains. */
    double (*fma)(void);
    /* Reads bytes, a multiple of PIECE, one after the other. */
    void (*stream)(const unsigned char *memory, size_t bytes);
    /* Reads rows of `row` bytes, a multiple of LINE, in the given order [count + ahead]; asks for the row that is `ahead` further on. */
    void (*rows)(const unsigned char *memory, size_t row, const uint32_t *order, size_t count, size_t ahead);
} loops;

static volatile float factor = 0.5f, addend = 1.0f;

/* A value that only an empty asm statement uses is loaded all the same, without an operation on it. */
#if defined(__x86_64__)
#define LOADED(value) __asm__ volatile("" : : "v"(value))
#elif defined(__aarch64__)
#define LOADED(value) __asm__ volatile("" : : "w"(value))
#else
#error "limits.c: name the registers that hold vectors here"
#endif

/* The same loops for vectors of `width` bytes. CMakeLists.txt lets the compiler turn a * b + c into an FMA and unroll. */
#define DEFINE_LOOPS(name, attributes, width)                                                                                              \
    typedef float name##_vector __attribute__((vector_size(width)));                                                                       \
    attributes static double name##_fma(void)                                                                                              \
    {                                                                                                                                      \
        const name##_vector zero = {0}, by = zero + factor, plus = zero + addend;                                                          \
        name##_vector sums[ACCUMULATORS];                                                                                                  \
        for (int i = 0; i < ACCUMULATORS; ++i) {                                                                                           \
            sums[i] = zero + addend; /* volatile: nobody knows that all chains are the same */                                             \
        }                                                                                                                                  \
        for (int step = 0; step < FMA_STEPS; ++step) {                                                                                     \
            for (int i = 0; i < ACCUMULATORS; ++i) {                                                                                       \
                sums[i] = sums[i] * by + plus;                                                                                             \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (int i = 0; i < ACCUMULATORS; ++i) {                                                                                           \
            LOADED(sums[i]);                                                                                                               \
        }                                                                                                                                  \
        return 2.0 * (width / sizeof(float)) * ACCUMULATORS * FMA_STEPS;                                                                   \
    }                                                                                                                                      \
    attributes static void name##_lines(const unsigned char *from, size_t bytes)                                                           \
    {                                                                                                                                      \
        for (size_t i = 0; i < bytes; i += width) {                                                                                        \
            LOADED(*(const name##_vector *)(const void *)(from + i));                                                                      \
        }                                                                                                                                  \
    }                                                                                                                                      \
    attributes static void name##_stream(const unsigned char *memory, size_t bytes)                                                        \
    {                                                                                                                                      \
        for (size_t at = 0; at < bytes; at += PIECE) {                                                                                     \
            name##_lines(memory + at, PIECE);                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    attributes static void name##_rows(const unsigned char *memory, size_t row, const uint32_t *order, size_t count, size_t ahead)         \
    {                                                                                                                                      \
        for (size_t i = 0; i < count; ++i) {                                                                                               \
            const unsigned char *from = memory + order[i] * row, *next = memory + order[i + ahead] * row;                                  \
            for (size_t at = 0; at < row; at += LINE) {                                                                                    \
                if (ahead) {                                                                                                               \
                    __builtin_prefetch(next + at, 0, 2);                                                                                   \
                }                                                                                                                          \
                name##_lines(from + at, LINE);                                                                                             \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static const loops name##_loops = {name##_fma, name##_stream, name##_rows};

#if defined(__x86_64__)
DEFINE_LOOPS(avx512, __attribute__((target("avx512f"))), 64)
DEFINE_LOOPS(avx2, __attribute__((target("avx2,fma"))), 32)
#endif
DEFINE_LOOPS(plain, , 16)

/* Both the CPU and its operating system must know the registers. */
static const loops *widest_loops(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return &avx512_loops;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &avx2_loops;
    }
#endif
    return &plain_loops;
}

/* What all limits are measured with: memory[streamed or rows * row], order[rows + most_ahead]. */
typedef struct bench {
    const loops *core;
    const limits_sizes *sizes;
    unsigned char *memory;
    uint32_t *order;
    size_t streamed, row, rows, most_ahead;
} bench;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Reads `bytes` again and again, at least 16 MiB in all: much work between two looks at the clock, which are system calls. */
static double stream(const bench *b, size_t bytes)
{
    size_t done = 0;
    bytes = bytes / PIECE * PIECE;
    for (; done < (size_t)16 << 20; done += bytes) {
        b->core->stream(b->memory, bytes);
    }
    return (double)done;
}

/* Between two sizes, as many times the one as the other is of it: too large for the smaller cache, with room in the larger one. */
static size_t between(size_t small, size_t large)
{
    size_t middle = small;
    while (middle < large / middle * small) {
        middle *= 2;
    }
    return middle;
}

static double do_fma(const bench *b, int round)
{
    (void)round;
    return b->core->fma();
}

static double do_l1(const bench *b, int round)
{
    (void)round;
    return stream(b, b->sizes->l1d / 2);
}

static double do_l2(const bench *b, int round)
{
    (void)round;
    return stream(b, b->sizes->l2 / 2);
}

static double do_l3(const bench *b, int round)
{
    (void)round;
    return stream(b, between(b->sizes->l2, b->sizes->l3));
}

static double do_memory(const bench *b, int round)
{
    (void)round;
    return stream(b, b->streamed);
}

/* How far ahead to ask for rows, if at all, differs from core to core: every round tries another distance. */
static double do_random_rows(const bench *b, int round)
{
    const size_t ahead = round % 4 ? ((size_t)4 << 10 << round % 4) / b->row : 0;
    b->core->rows(b->memory, b->row, b->order, b->rows, ahead < b->most_ahead ? ahead : b->most_ahead);
    return (double)b->rows * (double)b->sizes->row;
}

/* What is measured, in order: each does some work and returns the operations or bytes. */
static const struct {
    const char *name;
    double (*work)(const bench *b, int round);
} measured[LIMITS_COUNT] = {
    {"fma_gflops", do_fma}, {"l1_gbytes", do_l1},         {"l2_gbytes", do_l2},
    {"l3_gbytes", do_l3},   {"memory_gbytes", do_memory}, {"random_rows_gbytes", do_random_rows},
};

static size_t clamp(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Every row once, in an order without a pattern (Fisher and Yates, splitmix64), so that no row comes back before all others were read; then
   the first `more` again. */
static uint32_t *shuffled(size_t count, size_t more)
{
    uint32_t *order = malloc((count + more) * sizeof(*order));
    uint64_t state = 1;
    for (size_t i = 0; order && i < count; ++i) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t bits = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
        const size_t other = (bits ^ (bits >> 31)) % (i + 1);
        order[i] = order[other];
        order[other] = (uint32_t)i;
    }
    if (order) {
        memcpy(order + count, order, more * sizeof(*order));
    }
    return order;
}

/* 10^9 operations or bytes a second. The first call is not timed: it brings into a cache what the measurement before has displaced. */
static double one_round(const bench *b, double (*work)(const bench *b, int round), int round)
{
    double done = 0, taken = 0;
    work(b, round);
    const double start = seconds();
    while (taken < round_seconds) {
        done += work(b, round);
        taken = seconds() - start;
    }
    return done / taken * 1e-9;
}

bool limits_measure(const limits_sizes *sizes, limit found[LIMITS_COUNT])
{
    bench b = {.core = widest_loops(), .sizes = sizes};
    /* Twice L3, so that nothing is left of it when it is read again. Of larger tables a part shows the same. */
    b.streamed = clamp(2 * sizes->l3, least_memory, most_memory);
    b.row = (sizes->row + LINE - 1) / LINE * LINE;
    b.rows = clamp(sizes->table / sizes->row, 1, most_memory / b.row);
    b.most_ahead = clamp(64, 0, b.rows - 1);
    b.order = shuffled(b.rows, b.most_ahead);
    const size_t bytes = b.streamed > b.rows * b.row ? b.streamed : b.rows * b.row;
    b.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool good = b.order && b.memory != MAP_FAILED;
    if (good) {
        madvise(b.memory, bytes, MADV_HUGEPAGE); /* where there are none, limits are those of small pages */
        memset(b.memory, 1, bytes);              /* pages that were never written are all the same page of zeros */
        for (int i = 0; i < LIMITS_COUNT; ++i) {
            found[i] = (limit){measured[i].name, 0};
        }
        for (int round = 0; round < ROUNDS; ++round) {
            for (int i = 0; i < LIMITS_COUNT; ++i) {
                const double rate = one_round(&b, measured[i].work, round);
                found[i].rate = rate > found[i].rate ? rate : found[i].rate;
            }
        }
    }
    if (b.memory != MAP_FAILED) {
        munmap(b.memory, bytes);
    }
    free(b.order);
    return good;
}
