/* What tiny_request_amx says on CPUs and Linuxes of every kind, and whether tiny_bind takes AMX: with a made-up <cpuid.h>, and a made-up
   Linux or that of this machine. lookupc asks for itself by harness/base/amx.c, here as well.
   TINY.bin and made_up or real on the command line; for a bundle of scalar, avx2, avx512 and amx_int8. */
#include "harness/base/amx.h"
#include "tiny.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

unsigned fake_leaves = 0x1d, fake_leaf1_ecx = 1 << 12 | 1 << 27 | 1 << 28; /* FMA, OSXSAVE, AVX */
unsigned fake_leaf7_ebx = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;       /* AVX-512 F, DQ, BW, VL */
unsigned fake_leaf7_edx, fake_last_subleaf, fake_leaf7_1_eax, fake_xcr0, fake_xgetbv_calls;

/* EAX of subleaf 0, EAX, EBX and ECX of subleaf 1. */
static const unsigned palette[] = {1, 1024 << 16 | 8192, 8 << 16 | 64, 16};
const unsigned *fake_palette = palette;

enum {
    TILE = 1 << 24,
    INT8 = 1 << 25, /* leaf 7, EDX */
    ZMM_STATE = 0xe7,
    TILE_STATE = 3 << 17, /* XCR0 */
    GET = 0x1022,
    REQUEST = 0x1023, /* of arch_prctl */
    AVX512 = 2,
    AMX = 3 /* instruction sets of the bundle */
};

static int64_t fake_error; /* what the made-up Linux answers, 0: it has AMX */
static uint64_t fake_granted;
static int fake_requests;

static _Alignas(TINY_ALIGN) unsigned char blob[TINY_WEIGHTS_BYTES];
static int failures;

int64_t fake_arch_prctl(int64_t option, uintptr_t argument)
{
    stack_t stack = {0};
    sigaltstack(NULL, &stack);
    fake_requests += option == REQUEST;
    if (fake_error != 0 || (option != GET && (option != REQUEST || argument != 18)))
        return fake_error != 0 ? fake_error : -EINVAL;
    if (option == GET) {
        *(uint64_t *)argument = fake_granted;
        return 0;
    }
    if (!(stack.ss_flags & SS_DISABLE) && stack.ss_size < 11952)
        return -ENOSPC;
    fake_granted |= 1 << 18;
    return 0;
}

/* In place of the C library's. */
long fake_syscall(long number, ...);
long fake_syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    const int option = va_arg(list, int), argument = va_arg(list, int);
    va_end(list);
    const int64_t result = fake_arch_prctl(option, (uintptr_t)argument);
    errno = result < 0 ? (int)-result : errno;
    return result < 0 ? -1 : 0;
}

static void expect(const char *what, const char *of, int got, int expected)
{
    if (got == expected)
        return;
    printf("request_amx: %s: %s %d, expected %d\n", what, of, got, expected);
    ++failures;
}

static void expect_bound(const char *what, int isa)
{
    const int requests = fake_requests;
    tiny_weights weights = {0};
    expect(what, "bind's status", tiny_bind(blob, sizeof blob, &weights), TINY_OK);
    expect(what, "instruction set", weights.isa, isa);
    expect(what, "requests by bind", fake_requests - requests, 0);
}

static void set_signal_stack(size_t bytes)
{
    static char memory[1 << 16];
    const stack_t stack = {.ss_sp = memory, .ss_size = bytes, .ss_flags = bytes > 0 ? 0 : SS_DISABLE};
    expect("signal stack", "status", sigaltstack(&stack, NULL), 0);
}

static void on_this_linux(void)
{
    fake_leaf7_edx = TILE | INT8, fake_xcr0 = ZMM_STATE | TILE_STATE;
    expect_bound("this Linux, not asked", AVX512);
    set_signal_stack(8192);
    expect("this Linux, a small signal stack", "granted", tiny_request_amx() == TINY_OK, 0);
    expect_bound("this Linux, a small signal stack", AVX512);
    set_signal_stack(0);
    const int granted = tiny_request_amx() == TINY_OK;
    expect_bound("this Linux", granted ? AMX : AVX512);
    expect("this Linux", "granted to lookupc", !amx_request(), granted);
}

/* Each begins without permission; `lookupc`: what it says, "": it may use AMX. */
static const struct {
    const char *what;
    unsigned edx, states;
    int64_t error;
    size_t signal_stack;
    int status, requests;
    const char *lookupc;
} cases[] = {
    {"no AMX", 0, TILE_STATE, 0, 0, TINY_ERROR_AMX, 0, "this CPU has none"},
    {"tiles without products of bytes", TILE, TILE_STATE, 0, 0, TINY_ERROR_AMX, 0, ""},
    {"a system that saves no tiles", TILE | INT8, 0, -EOPNOTSUPP, 0, TINY_ERROR_AMX, 0, "this kernel does not save its tiles"},
    {"Linux 5.15", TILE | INT8, TILE_STATE, -EINVAL, 0, TINY_ERROR_AMX, 1, "this kernel does not know it: it needs Linux 5.16"},
    {"Linux without AMX", TILE | INT8, TILE_STATE, -EOPNOTSUPP, 0, TINY_ERROR_AMX, 1, "this kernel does not save its tiles"},
    {"forbidden", TILE | INT8, TILE_STATE, -EPERM, 0, TINY_ERROR_AMX_REFUSED, 1, "refused by the system"},
    {"a signal stack of 8192 bytes", TILE | INT8, TILE_STATE, 0, 8192, TINY_ERROR_AMX_STACK, 1,
     "refused: an alternate signal stack is too small for its tiles"},
    {"a signal stack of 16384 bytes", TILE | INT8, TILE_STATE, 0, 16384, TINY_OK, 1, ""},
    {"no signal stack", TILE | INT8, TILE_STATE, 0, 0, TINY_OK, 1, ""},
};

static void on_made_up_ones(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        fake_leaf7_edx = cases[i].edx, fake_xcr0 = ZMM_STATE | cases[i].states;
        fake_error = cases[i].error, fake_granted = 7, fake_requests = 0;
        set_signal_stack(cases[i].signal_stack);
        expect_bound(cases[i].what, AVX512);
        expect(cases[i].what, "status", tiny_request_amx(), cases[i].status);
        expect(cases[i].what, "requests", fake_requests, cases[i].requests);
        expect_bound(cases[i].what, cases[i].status == TINY_OK ? AMX : AVX512);
        fake_granted = 7;
        const char *lookupc = amx_request();
        expect(cases[i].what, lookupc ? lookupc : "no complaint:", strcmp(lookupc ? lookupc : "", cases[i].lookupc), 0);
    }
    expect_bound("granted to other code", AMX);
    expect("once more", "status", tiny_request_amx(), TINY_OK);
}

/* A guest that is offered AMX without tiles, or with others: permission would not help it. */
static void without_tiles(void)
{
    const unsigned others[][4] = {{0, 0, 0, 0},
                                  {0, palette[1], palette[2], palette[3]},
                                  {1, 0, 0, 0},
                                  {1, 512 << 16 | 8192, palette[2], palette[3]},
                                  {1, palette[1], 8 << 16 | 32, palette[3]},
                                  {1, palette[1], 4 << 16 | 64, palette[3]},
                                  {1, palette[1], palette[2], 8}};
    const unsigned leaves = fake_leaves;
    for (size_t i = 0; i <= sizeof others / sizeof *others; ++i) {
        const bool short_of_leaves = i == sizeof others / sizeof *others;
        fake_palette = short_of_leaves ? palette : others[i];
        fake_leaves = short_of_leaves ? 0x1c : leaves;
        fake_requests = 0;
        expect_bound("no palette", AVX512);
        expect("no palette", "status", tiny_request_amx(), TINY_ERROR_AMX);
        const char *lookupc = amx_request();
        expect("no palette", lookupc ? lookupc : "no complaint", lookupc && strstr(lookupc, "palette 1") != NULL, true);
        expect("no palette", "requests", fake_requests, 0);
    }
    fake_palette = palette, fake_leaves = leaves;
    expect_bound("tiles again", AMX);
}

int main(int count, char **arguments)
{
    FILE *file = count == 3 ? fopen(arguments[1], "rb") : NULL;
    if (!file || fread(blob, 1, sizeof blob, file) != sizeof blob)
        return 1;
    if (strcmp(arguments[2], "real") == 0)
        on_this_linux();
    else
        on_made_up_ones(), without_tiles();
    return failures > 0;
}
