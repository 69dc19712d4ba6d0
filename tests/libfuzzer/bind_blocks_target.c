/* The blob of a transformer: what <model>_bind accepts can decode and prefill, whatever its weights are. */
#include "small_blocks.h"

#define MODEL(word) small_blocks_##word
#define MACRO(word) SMALL_BLOCKS_##word
#define BLOB "small_blocks.bin"

#include "tests/libfuzzer/bind.h"

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
