/* tiny_flush_denormals: what it makes of denormal numbers, and that it returns to the state before, also one that it does not make. */
#include "tiny.h"

#include <stdio.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

static int failures;

/* Whether small results and small inputs are flushed to zero now. */
static void expect(const char *when, int results, int inputs)
{
    volatile float small = 1e-30f, smaller = 1e-10f, denormal = 1e-39f, large = 1e30f;
    const volatile float result = small * smaller, of_input = denormal * large;
    if ((result == 0.0f) != results || (of_input == 0.0f) != inputs) {
        printf("denormals: %s: %g, %g\n", when, (double)result, (double)of_input);
        ++failures;
    }
}

int main(void)
{
    expect("at first", 0, 0);
    const int before = tiny_flush_denormals(1);
    expect("flushed", 1, 1);
    const int within = tiny_flush_denormals(1);
    tiny_flush_denormals(within);
    expect("flushed by the caller of a caller", 1, 1);
    tiny_flush_denormals(0);
    expect("ended", 0, 0);
    tiny_flush_denormals(within);
    tiny_flush_denormals(before);
    expect("as before", 0, 0);
#ifdef __SSE2__
    const unsigned control = _mm_getcsr() | 0x8000u | 0x2000u; /* results alone; rounding down */
    _mm_setcsr(control);
    const int own = tiny_flush_denormals(1);
    expect("flushed from results alone", 1, 1);
    tiny_flush_denormals(own);
    expect("results alone again", 1, 0);
    failures += (_mm_getcsr() | 0x3fu) != (control | 0x3fu);
#endif
    return failures > 0;
}
