/* What a core can do at most, as functions for prepared calls, with the widest vectors that this CPU runs. */
#include "harness/base/lua_compiled.h"
#include "harness/baseline/vectors.h"
#include "harness/measure/modules.h"

#include <lauxlib.h>

#include <stdint.h>

enum {
    LINE = 64,         /* bytes of a cache line; rows start on one */
    ACCUMULATORS = 12, /* covers the latency of two FMA units and leaves registers for the operands */
    PIECE = 8 * LINE,  /* what a loop over memory reads in one step */
    STRIP = 2 * LINE,  /* of a row, read before the other rows' */
    STREAMS = 4
};

/* The loops of one instruction set. */
typedef struct loops {
    /* So many floating-point operations, in ACCUMULATORS independent chains; an FMA is two. */
    void (*fma)(size_t operations);
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
    attributes static void name##_fma(size_t operations)                                                                                   \
    {                                                                                                                                      \
        const name##_vector zero = {0}, by = zero + factor, plus = zero + addend;                                                          \
        name##_vector sums[ACCUMULATORS];                                                                                                  \
        for (int i = 0; i < ACCUMULATORS; ++i) {                                                                                           \
            sums[i] = zero + addend; /* volatile: nobody knows that all chains are the same */                                             \
        }                                                                                                                                  \
        for (size_t done = 0; done < operations; done += ACCUMULATORS * 2 * width / sizeof(float)) {                                       \
            for (int i = 0; i < ACCUMULATORS; ++i) {                                                                                       \
                sums[i] = sums[i] * by + plus;                                                                                             \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (int i = 0; i < ACCUMULATORS; ++i) {                                                                                           \
            LOADED(sums[i]);                                                                                                               \
        }                                                                                                                                  \
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

static uintptr_t fma_(size_t operations)
{
    widest_loops()->fma(operations);
    return 0;
}

static uintptr_t stream(const unsigned char *memory, size_t bytes, size_t times)
{
    const loops *core = widest_loops();
    for (size_t i = 0; i < times; ++i)
        core->stream(memory, bytes / PIECE * PIECE);
    return 0;
}

static uintptr_t rows(const unsigned char *memory, size_t row, const uint32_t *order, size_t count, size_t ahead)
{
    widest_loops()->rows(memory, row, order, count, ahead);
    return 0;
}

static uintptr_t strips(const unsigned char *memory, size_t row, const uint32_t *order, size_t count, size_t together)
{
    widest_loops()->strips(memory, row, order, count, together);
    return 0;
}

static uintptr_t read_(const unsigned char *memory, size_t bytes)
{
    const loops *core = widest_loops();
    const size_t each = bytes / STREAMS / PIECE * PIECE;
    for (size_t at = 0; at < each; at += PIECE)
        for (size_t number = 0; number < STREAMS; ++number)
            core->stream(memory + number * each + at, PIECE);
    return 0;
}

void limits_add_functions(lua_State *L)
{
    static const struct {
        const char *name;
        void (*called)(void); /* as those of a library are, whose types nobody knows either */
    } functions[] = {{"fma", (void (*)(void))fma_},
                     {"stream", (void (*)(void))stream},
                     {"rows", (void (*)(void))rows},
                     {"strips", (void (*)(void))strips},
                     {"read", (void (*)(void))read_}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
        compiled_push_function(L, (compiled_function *)functions[i].called);
        lua_setfield(L, -2, functions[i].name);
    }
}
