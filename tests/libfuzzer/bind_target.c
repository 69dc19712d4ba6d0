/* The blob of a LookupFFN: what <model>_bind accepts can be run, whatever its weights are. */
#include "small.h"

#define MODEL(word) small_##word
#define MACRO(word) SMALL_##word
#define BLOB "small.bin"

#include "tests/libfuzzer/bind.h"

enum { TOKENS = 9 }; /* a tile of eight and one */

static void run(const small_weights *weights)
{
    float x[TOKENS * SMALL_D], y[TOKENS * SMALL_D_OUT];
    for (size_t i = 0; i < sizeof x / sizeof *x; ++i)
        x[i] = (float)i - 20.0f;
    void *scratch = fuzz_memory(SMALL_SCRATCH_BYTES);
    small_ffn(weights, x, y, TOKENS, scratch);
    small_ffn(weights, x, y, 1, scratch);
    free(scratch);
}
