#ifndef $(names.macro("RUNTIME_H_INCLUDED"))
#define $(names.macro("RUNTIME_H_INCLUDED"))

/* What the sources of $(model) share and no caller needs: include $(names.header) instead. C only. */

#include <stddef.h>
#include <stdint.h>

#include "$(names.header)"

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__)
#error "compile without -ffast-math: it drops NaN and reorders sums that round on purpose"
#endif
//$ if openmp then
#if defined($(names.macro("OPENMP"))) && !defined(_OPENMP)
#error "$(names.macro("OPENMP")) needs -fopenmp"
#endif
//$ end
//$ if functions then

//$ lines("", functions)
//$ end
//$ for _, isa in ipairs(isas) do
//$ if isa.functions then

//$ lines("", isa.functions)
//$ end
//$ for _, type in ipairs(types) do
//$ if isa.type_functions and isa.type_functions[type.name] then

//$ lines("", isa.type_functions[type.name])
//$ end
//$ end
//$ end
$(include(prototypes))

#endif
