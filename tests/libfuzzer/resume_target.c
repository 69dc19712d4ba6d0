/* Checkpoints of training: see resume.lua. */
#include "tests/libfuzzer/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_lua("tests.libfuzzer.resume", data, size);
}
