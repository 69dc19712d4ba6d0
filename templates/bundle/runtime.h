//$ takes helpers, functions, inlines, register_barriers, openmp, types, prototypes
#ifndef $(names.macro("RUNTIME_H_INCLUDED"))
#define $(names.macro("RUNTIME_H_INCLUDED"))

/* What the sources of $(model) share and no caller needs: include $(names.header) instead. C only. Functions
   with the name of an instruction set are for its files. */

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define $(names.macro("SOURCES")) /* here its functions are defined */ //$ if api ~= ""
#include "$(names.header)"

#if INT_MAX < 0x7fffffff
#error "an int of at least 32 bits is needed: what is narrower is multiplied and shifted in int"
#endif

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__)
#error "compile without -ffast-math: it drops NaN and reorders sums that round on purpose"
#endif
//$ if openmp then
#if defined($(names.macro("OPENMP"))) && !defined(_OPENMP)
#error "$(names.macro("OPENMP")) needs -fopenmp"
#endif
//$ end
//$ if functions then

$(include(functions))
//$ end
//$ if register_barriers then

/* Leaves v, a vector, in its register: otherwise gcc 12 copies sums of integers at every step, and reads words of weights once for each
   part. */
#if defined(__GNUC__)
#define $(names.macro("REGISTER_BARRIER"))(v) __asm__("" : "+v"(v))
#else
#define $(names.macro("REGISTER_BARRIER"))(v) ((void) 0)
#endif
//$ end
//$ if inlines then

/* A function that works on its caller's registers: gcc's -O2 would leave it a call, which passes them in memory. */
#if defined(__GNUC__)
#define $(names.macro("INLINE")) static inline __attribute__((always_inline))
#else
#define $(names.macro("INLINE")) static inline
#endif
//$ end
//$ lines(helpers)
$(include(types)) //$ if types
//$ if api ~= "" then

#if defined(__ELF__) || defined(__MACH__)
#pragma GCC visibility push(hidden)
#endif
//$ end
$(include(prototypes))
//$ if api ~= "" then

#if defined(__ELF__) || defined(__MACH__)
#pragma GCC visibility pop
#endif
//$ end

#endif
