/* Measures the limits of this core: fused multiply-adds, reading from each level of memory, reading random rows. */
#include "harness/measure/limits.h"

#include "harness/base/clock.h"
#include "harness/baseline/vectors.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ROUND_WAYS = 8,    /* of do_random_rows: every round takes another one */
    CORE_EVERY = 2,    /* so many-th round measures the core, too, which has one way; for a glance, one round */
    MAX_PASSES = 3,    /* over these ways */
    LINE = 64,         /* bytes of a cache line; rows start on one */
    ACCUMULATORS = 12, /* covers the latency of two FMA units and leaves registers for the operands */
    PIECE = 8 * LINE,  /* what a loop over memory reads in one step */
    FMA_STEPS = 1 << 15,
    STRIP = 2 * LINE /* of a row, read before the other rows' */
};

static const double round_seconds = 0.05, short_round_seconds = 0.01;
static const size_t least_memory = (size_t)64 << 20, most_memory = (size_t)1 << 30;

/* The loops of one instruction set. */
typedef struct loops {
    /* Floating-point operations of one call: ACCUMULATORS independent chains. */
    double (*fma)(void);
    /* Reads bytes, a multiple of PIECE, one after the other. */
    void (*stream)(const unsigned char *memory, size_t bytes);
    /* Reads rows of `row` bytes, a multiple of LINE, in the given order [count + ahead]; prefetches the row that is `ahead` further on. */
    void (*rows)(const unsigned char *memory, size_t row, const uint32_t *order, size_t count, size_t ahead);
    /* The same strip by strip: the first STRIP of `together` rows, then their second ones, and so on; prefetches the row's next one. */
    void (*strips)(const unsigned char *memory, size_t row, const uint32_t *order, size_t count, size_t together);
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
    attributes static void name##_strips(const unsigned char *memory, size_t row, const uint32_t *order, size_t count, size_t together)    \
    {                                                                                                                                      \
        for (size_t first = 0; first < count; first += together) {                                                                         \
            const size_t end = count - first < together ? count : first + together;                                                        \
            for (size_t i = first; i < end; ++i) {                                                                                         \
                for (size_t at = 0; at < row && at < STRIP; at += LINE) {                                                                  \
                    __builtin_prefetch(memory + order[i] * row + at, 0, 3);                                                                \
                }                                                                                                                          \
            }                                                                                                                              \
            for (size_t strip = 0; strip < row; strip += STRIP) {                                                                          \
                for (size_t i = first; i < end; ++i) {                                                                                     \
                    const unsigned char *from = memory + order[i] * row;                                                                   \
                    for (size_t at = strip; at < row && at < strip + STRIP; at += LINE) {                                                  \
                        __builtin_prefetch(from + (at + STRIP < row ? at + STRIP : at), 0, 3);                                             \
                        name##_lines(from + at, LINE);                                                                                     \
                    }                                                                                                                      \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static const loops name##_loops = {name##_fma, name##_stream, name##_rows, name##_strips};

#if defined(__x86_64__)
DEFINE_LOOPS(avx512, VECTORS_64, 64)
DEFINE_LOOPS(avx2, VECTORS_32, 32)
#endif
DEFINE_LOOPS(plain, , 16)

static const loops *widest_loops(void)
{
    switch (vectors_bytes()) {
#if defined(__x86_64__)
    case 64: return &avx512_loops;
    case 32: return &avx2_loops;
#endif
    default: return &plain_loops;
    }
}

/* Rows of one kind: `count` of them, each `row` bytes in whole lines, read in the order[count + most_ahead]. */
typedef struct row_order {
    size_t bytes, row, count, most_ahead;
    uint32_t *order;
} row_order;

/* What a limit is measured with: memory as large as what is streamed and as any rows; the rows of this limit. */
typedef struct bench {
    const loops *core;
    const limits_sizes *sizes;
    unsigned char *memory;
    size_t streamed;
    const row_order *rows;
} bench;

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

/* How to prefetch rows, if at all, differs from core to core: every round tries another way. */
static double do_random_rows(const bench *b, int round)
{
    const row_order *rows = b->rows;
    const int way = round % ROUND_WAYS;
    if (way >= 6) { /* all rows of a token, or as many as a core has lines under way */
        b->core->strips(b->memory, rows->row, rows->order, rows->count, way == 6 ? 128 : 16);
    } else { /* 8 to 128 KiB ahead, into L2 */
        const size_t ahead = way ? ((size_t)4 << 10 << way) / rows->row : 0;
        b->core->rows(b->memory, rows->row, rows->order, rows->count, ahead < rows->most_ahead ? ahead : rows->most_ahead);
    }
    return (double)rows->count * (double)rows->bytes;
}

/* What is measured of the core, in order: each does some work and returns the operations or bytes. */
static const struct {
    const char *name;
    double (*work)(const bench *b, int round);
} of_core[LIMITS_OF_CORE] = {
    {"fma_gflops", do_fma}, {"l1_gbytes", do_l1}, {"l2_gbytes", do_l2}, {"l3_gbytes", do_l3}, {"memory_gbytes", do_memory},
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

/* 10^9 operations or bytes a second. The first call is not timed: it brings into a cache what the measurement before has displaced, but
   nothing of what is too large for one. */
static double one_round(const bench *b, double (*work)(const bench *b, int round), int round, double seconds)
{
    double done = 0, taken = 0;
    if (work != do_memory) {
        work(b, round);
    }
    const double start = thread_seconds_now();
    while (taken < seconds) {
        done += work(b, round);
        taken = thread_seconds_now() - start;
    }
    return done / taken * 1e-9;
}

/* The rows of tables, of large ones a part; order is NULL when there is no memory. */
static row_order make_rows(const limits_rows *tables)
{
    row_order rows = {.bytes = tables->row, .row = (tables->row + LINE - 1) / LINE * LINE};
    rows.count = clamp(tables->table / tables->row, 1, most_memory / rows.row);
    rows.most_ahead = clamp(256, 0, rows.count - 1);
    rows.order = shuffled(rows.count, rows.most_ahead);
    return rows;
}

/* Measures with b, which has memory, and rows[row_kinds]. */
static void measure(bench *b, const row_order *rows, size_t repetitions, limit *found)
{
    const size_t count = LIMITS_OF_CORE + b->sizes->row_kinds;
    for (size_t i = 0; i < count; ++i) {
        found[i] = (limit){i < LIMITS_OF_CORE ? of_core[i].name : b->sizes->rows[i - LIMITS_OF_CORE].name, 0};
    }
    const int rounds = ROUND_WAYS * (repetitions < MAX_PASSES ? (int)repetitions : MAX_PASSES);
    const double seconds = repetitions > 1 ? round_seconds : short_round_seconds;
    const int core_every = repetitions > 1 ? CORE_EVERY : ROUND_WAYS;
    for (int round = 0; round < rounds; ++round) {
        for (size_t i = round % core_every == 0 ? 0 : LIMITS_OF_CORE; i < count; ++i) {
            if (i >= LIMITS_OF_CORE) {
                b->rows = &rows[i - LIMITS_OF_CORE];
            }
            const double rate = one_round(b, i < LIMITS_OF_CORE ? of_core[i].work : do_random_rows, round, seconds);
            found[i].rate = rate > found[i].rate ? rate : found[i].rate;
        }
    }
}

void limits_read(const void *memory, size_t bytes)
{
    enum { STREAMS = 4 };
    const loops *core = widest_loops();
    const size_t each = bytes / STREAMS / PIECE * PIECE;
    for (size_t at = 0; at < each; at += PIECE) {
        for (size_t stream = 0; stream < STREAMS; ++stream) {
            core->stream((const unsigned char *)memory + stream * each + at, PIECE);
        }
    }
}

bool limits_measure(const limits_sizes *sizes, size_t repetitions, limit *found)
{
    /* Twice L3, so that nothing is left of it when it is read again. Of larger tables a part shows the same. */
    bench b = {.core = widest_loops(), .sizes = sizes, .streamed = clamp(2 * sizes->l3, least_memory, most_memory)};
    row_order *rows = calloc(sizes->row_kinds + 1, sizeof(*rows));
    bool good = rows != NULL;
    size_t bytes = b.streamed;
    for (size_t i = 0; good && i < sizes->row_kinds; ++i) {
        rows[i] = make_rows(&sizes->rows[i]);
        good = rows[i].order != NULL;
        bytes = bytes > rows[i].count * rows[i].row ? bytes : rows[i].count * rows[i].row;
    }
    b.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    good = good && b.memory != MAP_FAILED;
    if (good) {
        madvise(b.memory, bytes, MADV_HUGEPAGE); /* where there are none, limits are those of small pages */
        memset(b.memory, 1, bytes);              /* pages that were never written are all the same page of zeros */
        measure(&b, rows, repetitions, found);
    }
    if (b.memory != MAP_FAILED) {
        munmap(b.memory, bytes);
    }
    for (size_t i = 0; rows && i < sizes->row_kinds; ++i) {
        free(rows[i].order);
    }
    free(rows);
    return good;
}
