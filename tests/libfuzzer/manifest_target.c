/* Manifests of bundles: see manifest.lua. */
#include "tests/libfuzzer/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_lua("tests.libfuzzer.manifest", data, size);
}
