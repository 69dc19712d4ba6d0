/* How wide the vectors are that loops of the measuring process' own take. */
#ifndef LOOKUPC_HARNESS_BASELINE_VECTORS_H
#define LOOKUPC_HARNESS_BASELINE_VECTORS_H

#include <stddef.h>

/* Attributes of the copies for vectors of 64 and 32 bytes, of CPUs that have all they name. */
#define VECTORS_64_TARGET "avx512f,avx512bw,avx512dq,avx512vl,fma"
#define VECTORS_64 __attribute__((target(VECTORS_64_TARGET)))
#define VECTORS_32 __attribute__((target("avx2,fma")))

/* No vectors of more than so many bytes from now on. */
void vectors_limit(size_t bytes);

/* Bytes of the widest that this CPU and its operating system have within that limit: 64, 32, or 16 for portable C. */
size_t vectors_bytes(void);

#endif
