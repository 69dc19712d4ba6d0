/* Runs a bundle's self-test and then one token, each on a painted stack, and prints how many outputs are wrong and how deep the stacks
   were. Compiled with -DMODEL_HEADER="…", -DSELFTEST_HEADER="…" and -DMODEL(word)=<model>_##word, -DMACRO(word)=<MODEL>_##word, and with
   -DCALLS_HEADER="…", which says how such a model is called: run_ffn.h or run_whole.h. */
#include "tests/firmware/boards/board.h"

#include SELFTEST_HEADER

#include MODEL_HEADER

#include <stdint.h>

#define ALIGNED __attribute__((aligned(64)))

unsigned char board_stack[BOARD_STACK_BYTES] ALIGNED;
static unsigned char scratch[MACRO(SCRATCH_BYTES)] ALIGNED;
static MODEL(weights) weights;

#include CALLS_HEADER

_Static_assert(MACRO(RAM_BYTES) == GIVEN_BYTES, "what a caller gives is the RAM that the header declares");

#if defined(__arm__) || defined(__aarch64__)
#define STACK_POINTER(pointer) __asm__ volatile("mov %0, sp" : "=r"(pointer))
#elif defined(__riscv)
#define STACK_POINTER(pointer) __asm__ volatile("mv %0, sp" : "=r"(pointer))
#elif defined(__x86_64__)
#define STACK_POINTER(pointer) __asm__ volatile("mov %%rsp, %0" : "=r"(pointer))
#endif

unsigned run_selftest(void);
unsigned run_selftest(void)
{
    return selftest_wrong();
}

unsigned run_others(void);
unsigned run_others(void)
{
    return others_wrong();
}

/* 0: the weights are bound. */
int run_bind(void);
int run_bind(void)
{
    return MODEL(bind_linked)(&weights);
}

#ifdef STACK_POINTER
static unsigned char paint(const unsigned char *at)
{
    return (unsigned char)(0xa5u ^ (uintptr_t)at);
}

/* Where the part of an emulator's trace that is counted begins and ends. */
__attribute__((noinline)) void run_begin(void);
__attribute__((noinline)) void run_end(void);
void run_begin(void)
{
    __asm__ volatile("nop" ::: "memory");
}
void run_end(void)
{
    __asm__ volatile("nop" ::: "memory");
}

static unsigned wrong;

/* Binds the weights, then one token, or runs the self-test; returns the bytes of stack below the caller that were written. */
static inline __attribute__((always_inline)) unsigned painted(int selftest)
{
    volatile unsigned char *const low = board_stack;
    unsigned char *pointer;
    STACK_POINTER(pointer);
    const unsigned free_bytes = (unsigned)((uintptr_t)pointer - (uintptr_t)low);
    for (unsigned i = 0; i < free_bytes; ++i)
        low[i] = (unsigned char)(0xa5u ^ (uintptr_t)(low + i));
    int bound = 0;
    if (selftest) {
        wrong = selftest_wrong();
    } else {
        bound = MODEL(bind_linked)(&weights);
        run_begin();
        one_token();
        run_end();
        other_calls();
    }
    unsigned i = bound ? free_bytes : 0;
    while (i < free_bytes && low[i] == paint((const unsigned char *)board_stack + i))
        ++i;
    return free_bytes - i;
}

__attribute__((noinline)) static unsigned run_token(void)
{
    return painted(0);
}

#ifndef RUN_TRACE
__attribute__((noinline)) static unsigned paint_selftest(void)
{
    return painted(1);
}
#endif

/* In hexadecimal: a core without division has no library here. */
static void write_number(const char *name, unsigned number)
{
    char text[12];
    unsigned at = sizeof text;
    text[--at] = '\0';
    text[--at] = '\n';
    do
        text[--at] = "0123456789abcdef"[number & 15];
    while (number >>= 4);
    board_write(name);
    board_write(text + at);
}

void run(void)
{
#ifndef RUN_TRACE
    const unsigned selftest = paint_selftest();
    write_number("mismatches 0x", wrong + others_wrong());
    write_number("selftest 0x", selftest);
#endif
    if (run_bind() != 0)
        board_exit(1);
    write_number("stack 0x", run_token());
    board_exit(0);
}
#else
void run_token(void);
void run_token(void)
{
    one_token();
    other_calls();
}
#endif
