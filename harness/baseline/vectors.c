/* How wide the vectors are that loops of the measuring process' own take. */
#include "harness/baseline/vectors.h"

static size_t limit = 64;

void vectors_limit(size_t bytes)
{
    limit = bytes;
}

size_t vectors_bytes(void)
{
#if defined(__x86_64__)
    if (limit >= 64 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        return 64;
    }
    if (limit >= 32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return 32;
    }
#endif
    return 16;
}
