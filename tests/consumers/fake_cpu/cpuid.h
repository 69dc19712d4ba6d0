/* Stands in for the compiler's <cpuid.h>: the CPU and operating system that dispatch.c describes. `__asm__`, with which
   the emitted code asks for XGETBV, is made FAKE_XGETBV on the command line, and `volatile`, with which it calls Linux, FAKE_CALL. */
#ifndef FAKE_CPUID_H
#define FAKE_CPUID_H

#ifdef __cplusplus
#error "C only"
#endif

#include <stdint.h>

extern unsigned fake_leaves, fake_leaf1_ecx, fake_leaf7_ebx, fake_leaf7_edx, fake_last_subleaf, fake_leaf7_1_eax, fake_xcr0,
    fake_xgetbv_calls;
extern const unsigned *fake_palette; /* of tiles: the last one, and what leaf 1DH says of palette 1 in EAX, EBX and ECX */

static inline int __get_cpuid_count(unsigned leaf, unsigned part, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
    *a = leaf != 7 ? 0 : part == 0 ? fake_last_subleaf : fake_leaf7_1_eax;
    *d = leaf == 7 && part == 0 ? fake_leaf7_edx : part;
    *b = leaf == 7 ? fake_leaf7_ebx : 0;
    *c = leaf == 1 ? fake_leaf1_ecx : 0;
    if (leaf == 0x1d && leaf <= fake_leaves) {
        *a = fake_palette[part];
        *b = part == 1 ? fake_palette[2] : 0;
        *c = part == 1 ? fake_palette[3] : 0;
    }
    return leaf <= fake_leaves;
}

static inline int __get_cpuid(unsigned leaf, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
    return __get_cpuid_count(leaf, 0, a, b, c, d);
}

#define FAKE_XGETBV (a = fake_xcr0, d = 0, ++fake_xgetbv_calls)

int64_t fake_arch_prctl(int64_t option, uintptr_t argument);
#define FAKE_CALL ("" : "=a"(result) : "0"(fake_arch_prctl(option, argument)))

#endif
