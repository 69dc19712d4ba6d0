//$ takes
int $(names.flush_denormals)(int state)
{
#if defined(__GNUC__) && defined(__SSE2__)
    const unsigned both = 0x8040u; /* of MXCSR: flush to zero, denormals are zeros */
    const unsigned control = __builtin_ia32_stmxcsr();

    __builtin_ia32_ldmxcsr((control & ~both) | (state == 1 ? both : (unsigned) state & both));
    return (int) (control & both);
#elif defined(__GNUC__) && defined(__aarch64__)
    const uint64_t flush = (uint64_t) 1 << 24; /* of FPCR: flush to zero, inputs as well */
    uint64_t control, before;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    before = control & flush;
    control = (control & ~flush) | (state == 1 ? flush : (uint64_t) state & flush);
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
    return (int) before;
#else
    (void) state;
    return 0;
#endif
}
