/* Which instruction set tiny_bind chooses on CPUs and operating systems of every kind, through a made-up <cpuid.h>.
   TINY.bin on the command line; compiled with -DBUNDLE=1 for a bundle of scalar, avx2 and avx512, -DBUNDLE=2 for avx2, avx512 and
   avx512_bf16, -DBUNDLE=3 for avx2 alone. */
#include "tiny.h"

#include <stdio.h>

unsigned fake_leaves, fake_leaf1_ecx, fake_leaf7_ebx, fake_leaf7_edx, fake_last_subleaf, fake_leaf7_1_eax, fake_xcr0, fake_xgetbv_calls;
const unsigned *fake_palette;

enum {
    FMA = 1 << 12,
    OSXSAVE = 1 << 27,
    AVX = 1 << 28, /* leaf 1, ECX */
    AVX2 = 1 << 5,
    F = 1 << 16,
    DQ = 1 << 17,
    BW = 1 << 30,  /* leaf 7, EBX */
    BF16 = 1 << 5, /* its subleaf 1, EAX */
    SSE_STATE = 2,
    YMM_STATE = 4,
    ZMM_STATE = 0xe0 /* XCR0 */
};
static const unsigned VL = 1u << 31;

static const unsigned char *blob;
static int failures;

/* `expected`: 0 scalar, 1 avx2, 2 avx512, 3 avx512_bf16. */
static void expect(const char *what, unsigned leaves, unsigned leaf1, unsigned leaf7, unsigned state, int expected)
{
    fake_leaves = leaves, fake_leaf1_ecx = leaf1, fake_leaf7_ebx = leaf7, fake_xcr0 = state, fake_xgetbv_calls = 0;
    tiny_weights weights = {0};
    const int code = tiny_bind(blob, TINY_WEIGHTS_BYTES, &weights);
    const int expected_code = BUNDLE > 1 && expected == 0 ? TINY_ERROR_CPU : TINY_OK;
    const int expected_isa = BUNDLE == 3 ? 0 : BUNDLE == 2 ? expected - 1 : expected;
    if (code != expected_code || (code == TINY_OK && weights.isa != expected_isa)) {
        printf("dispatch: %s: code %d, isa %d: expected %d, %d\n", what, code, weights.isa, expected_code, expected_isa);
        ++failures;
    }
    if (fake_xgetbv_calls > 0 && !(leaf1 & OSXSAVE)) {
        printf("dispatch: %s: XGETBV where it is an illegal instruction\n", what);
        ++failures;
    }
}

int main(int count, char **arguments)
{
    static _Alignas(TINY_ALIGN) unsigned char bytes[TINY_WEIGHTS_BYTES];
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file || fread(bytes, 1, sizeof bytes, file) != sizeof bytes)
        return 1;
    blob = bytes;

    fake_last_subleaf = 1;
    const unsigned leaf1 = FMA | OSXSAVE | AVX, avx512 = AVX2 | F | DQ | BW | VL;
    const unsigned ymm = SSE_STATE | YMM_STATE, zmm = ymm | ZMM_STATE;
    expect("everything", 13, leaf1, avx512, zmm, 2);
    expect("AVX-512 without OPMASK state", 13, leaf1, avx512, zmm & ~0x20u, 1);
    expect("AVX-512, the system saves YMM only", 13, leaf1, avx512, ymm, 1);
    expect("AVX-512F alone", 13, leaf1, AVX2 | F, zmm, 1);
    expect("AVX-512 without DQ", 13, leaf1, avx512 & ~(unsigned)DQ, zmm, 1);
    expect("AVX-512 without BW", 13, leaf1, avx512 & ~(unsigned)BW, zmm, 1);
    expect("AVX-512 without VL", 13, leaf1, avx512 & ~VL, zmm, 1);
    expect("AVX2", 13, leaf1, AVX2, ymm, 1);
    expect("AVX2 without FMA", 13, leaf1 & ~(unsigned)FMA, avx512, zmm, 0);
    expect("AVX", 13, leaf1, 0, ymm, 0);
    expect("the system saves SSE only", 13, leaf1, avx512, SSE_STATE, 0);
    expect("no XSAVE", 13, leaf1 & ~(unsigned)OSXSAVE, avx512, zmm, 0);
    expect("no leaf 7", 6, leaf1, avx512, zmm, 0);
    expect("no leaf 1", 0, leaf1, avx512, zmm, 0);

    fake_leaf7_1_eax = BF16;
    expect("AVX-512 with BF16", 13, leaf1, avx512, zmm, BUNDLE == 2 ? 3 : 2);
    expect("BF16, the system saves YMM only", 13, leaf1, avx512, ymm, 1);
    fake_last_subleaf = 0;
    expect("BF16 in a subleaf that is not there", 13, leaf1, avx512, zmm, 2);
    return failures > 0;
}
