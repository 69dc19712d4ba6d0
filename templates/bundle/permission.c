//$ takes choice
#if $(choice.permitted[1].condition)
/* Calls arch_prctl of Linux, by its own instruction. Returns 0 or, below 0, the number of an error. */
static int64_t $(model)_arch_prctl(int64_t option, uintptr_t argument)
{
#if defined(__linux__) && defined(__LP64__)
    int64_t result = 158; /* the number of the call */

    __asm__ volatile("syscall" : "+a"(result) : "D"(option), "S"(argument) : "rcx", "r11", "memory");
    return result;
#else
    (void) option;
    (void) argument;
    return -22; /* EINVAL: there is no such option */
#endif
}

/* Whether Linux has granted this process the tiles of AMX. */
static int $(model)_may_use_tiles(void)
{
    uint64_t granted = 0; /* state components, as bits of XCR0 */

    return $(model)_arch_prctl(0x1022, (uintptr_t) &granted) == 0 && (granted >> 18 & 1u) != 0; /* ARCH_GET_XCOMP_PERM */
}
#endif
