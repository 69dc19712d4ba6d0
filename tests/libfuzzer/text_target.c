/* Rows of CSV and files of ids: see text.lua. */
#include "tests/libfuzzer/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_lua("tests.libfuzzer.text", data, size);
}
