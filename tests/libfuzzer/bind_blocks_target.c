/* The blob of a transformer: what <model>_bind accepts can decode and prefill, whatever its weights are. */
#include "tests/libfuzzer/fuzz.h"

#include "small_blocks.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENS = 9 };

static void run(const small_blocks_weights *weights)
{
    float x[TOKENS * SMALL_BLOCKS_D], y[TOKENS * SMALL_BLOCKS_D];
    for (size_t i = 0; i < sizeof x / sizeof *x; ++i)
        x[i] = (float)i - 20.0f;
    void *cache = fuzz_memory(SMALL_BLOCKS_CACHE_BYTES), *scratch = fuzz_memory(SMALL_BLOCKS_SCRATCH_BYTES),
         *decode_scratch = fuzz_memory(SMALL_BLOCKS_DECODE_SCRATCH_BYTES);
    FUZZ_CHECK(small_blocks_prefill(weights, cache, x, y, 0, TOKENS, scratch) == SMALL_BLOCKS_OK);
    FUZZ_CHECK(small_blocks_decode(weights, cache, x, y, TOKENS, decode_scratch) == SMALL_BLOCKS_OK);
    FUZZ_CHECK(small_blocks_decode(weights, cache, x, y, SMALL_BLOCKS_CONTEXT, decode_scratch) == SMALL_BLOCKS_ERROR_POSITION);
    free(decode_scratch);
    free(scratch);
    free(cache);
}

/* Binds the blob, which is freed, and runs it if it is accepted. Returns what bind returned. */
static int bind(unsigned char *blob, size_t size)
{
    small_blocks_weights weights, untouched;
    memset(&weights, 0x55, sizeof weights);
    untouched = weights;
    const int code = small_blocks_bind(blob, size, &weights);
    if (code == SMALL_BLOCKS_OK) {
        FUZZ_CHECK(size == SMALL_BLOCKS_WEIGHTS_BYTES);
        run(&weights);
    } else {
        FUZZ_CHECK(code > SMALL_BLOCKS_OK && code <= SMALL_BLOCKS_ERROR_CPU);
        FUZZ_CHECK(memcmp(&weights, &untouched, sizeof weights) == 0);
    }
    free(blob);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bind(fuzz_blob(data, size), size);
    FUZZ_CHECK(bind(fuzz_mended_blob("small_blocks.bin", SMALL_BLOCKS_WEIGHTS_BYTES, data, size), SMALL_BLOCKS_WEIGHTS_BYTES) ==
               SMALL_BLOCKS_OK);
    return 0;
}
