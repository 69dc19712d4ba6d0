/* A GGUF file: the tensors of an accepted one lie inside it, apart from each other, and can be found and read or are refused; what Lua
   makes of it: see gguf.lua. */
#include "tests/libfuzzer/fuzz.h"

#include "gen/weights/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_SIZE = 1024 };

/* All values of a tensor are finite, and the same when they are read in two parts, or it says why not. */
static void check_values(const safetensors *file, const safetensors_tensor *tensor, const char *path)
{
    char error[ERROR_SIZE];
    double *values = safetensors_load(file, tensor, error, sizeof error);
    if (values == NULL) {
        fuzz_check_message(error, path);
        return;
    }
    const size_t first = tensor->count / 3, rest = tensor->count - first;
    double *part = malloc((rest + 1) * sizeof *part);
    FUZZ_CHECK(part != NULL && safetensors_read(file, tensor, first, rest, part, error, sizeof error));
    for (size_t i = 0; i < tensor->count; ++i)
        FUZZ_CHECK(isfinite(values[i]));
    FUZZ_CHECK(memcmp(part, values + first, rest * sizeof *part) == 0);
    free(part);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4 || memcmp(data, "GGUF", 4) != 0)
        return 0;
    const char *path = fuzz_file("input.gguf", data, size);
    char error[ERROR_SIZE];
    safetensors *file = safetensors_open(path, error, sizeof error);
    if (file == NULL)
        fuzz_check_message(error, path);
    for (size_t i = 0; file != NULL && i < safetensors_count(file); ++i) {
        const safetensors_tensor *tensor = safetensors_at(file, i);
        FUZZ_CHECK(i == 0 || strcmp(safetensors_at(file, i - 1)->name, tensor->name) < 0);
        FUZZ_CHECK(tensor->at <= size && tensor->bytes <= size - tensor->at);
        FUZZ_CHECK(safetensors_find(file, tensor->name) == tensor);
        for (size_t k = 0; k < i; ++k) {
            const safetensors_tensor *other = safetensors_at(file, k);
            FUZZ_CHECK(tensor->at + tensor->bytes <= other->at || other->at + other->bytes <= tensor->at);
        }
        check_values(file, tensor, path);
    }
    safetensors_close(file);
    return fuzz_lua("tests.libfuzzer.gguf", data, size);
}
