/* AMX for CPUs that have only AVX2: AVX-512 by functions in C, and the tiles that emitted code brings in portable C. */
#include "avx512.h"

#if defined(LOOKUPC_TILES_IN_C)
#elif __STDC_HOSTED__
#define LOOKUPC_TILES_IN_C static __thread
#else
#define LOOKUPC_TILES_IN_C static
#endif
