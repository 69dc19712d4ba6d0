/* The blob of a LookupFFN: what <model>_bind accepts can be run, whatever its weights are. */
#include "tests/libfuzzer/fuzz.h"

#include "small.h"

#include <stdlib.h>
#include <string.h>

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

/* Binds the blob, which is freed, and runs it if it is accepted. Returns what bind returned. */
static int bind(unsigned char *blob, size_t size)
{
    small_weights weights, untouched;
    memset(&weights, 0x55, sizeof weights);
    untouched = weights;
    const int code = small_bind(blob, size, &weights);
    if (code == SMALL_OK) {
        FUZZ_CHECK(size == SMALL_WEIGHTS_BYTES);
        run(&weights);
    } else {
        FUZZ_CHECK(code > SMALL_OK && code <= SMALL_ERROR_CPU);
        FUZZ_CHECK(memcmp(&weights, &untouched, sizeof weights) == 0);
    }
    free(blob);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bind(fuzz_blob(data, size), size);
    FUZZ_CHECK(bind(fuzz_mended_blob("small.bin", SMALL_WEIGHTS_BYTES, data, size), SMALL_WEIGHTS_BYTES) == SMALL_OK);
    return 0;
}
