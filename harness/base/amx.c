/* The permission to use AMX, which Linux gives a process that asks for it. */
#include "harness/base/amx.h"

#include <stddef.h>

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TILE = 1 << 24, REQUEST = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILE_DATA = 18 /* XFEATURE_XTILE_DATA */ };

/* Whether CPUID leaf 1DH describes palette 1: eight tiles of 16 rows of 64 bytes. */
static bool has_palette(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(0x1D, 0, &a, &b, &c, &d) || a < 1) /* the last palette */
        return false;
    return __get_cpuid_count(0x1D, 1, &a, &b, &c, &d) && a >> 16 == 1024 && b == (8u << 16 | 64u) && (c & 0xFFFFu) == 16;
}

const char *amx_request(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    const char *const mask = getenv("LOOKUPC_CPU"); /* harness/base/cpu.lua says what it may be */
    if (mask && *mask && strncmp(mask, "amx", 3) != 0)
        return "LOOKUPC_CPU masks it";
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & TILE)) /* programs that emulate a CPU may stop at an unknown call */
        return "this CPU has none";
    if (!has_palette())
        return "this CPU offers it without the tiles of palette 1 (CPUID leaf 1DH)";
    if (syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0)
        return NULL;
    switch (errno) {
    case EINVAL: return "this kernel does not know it: it needs Linux 5.16";
    case EOPNOTSUPP: return "this kernel does not save its tiles";
    case ENOSPC: return "refused: an alternate signal stack is too small for its tiles";
    default: return "refused by the system";
    }
}

#else

const char *amx_request(void)
{
    return "this CPU has none";
}

#endif
