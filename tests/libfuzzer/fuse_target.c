/* Checkpoints that are fused: see fuse.lua. */
#include "tests/libfuzzer/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_lua("tests.libfuzzer.fuse", data, size);
}
