/* A safetensors file: the tensors of an accepted one fill its data, lie inside it, and can be found and read or are refused. */
#include "tests/libfuzzer/fuzz.h"

#include "gen/weights/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_SIZE = 1024 };

/* The values of a tensor are those in the file and finite, or it says why not. */
static void check_values(const safetensors *file, const safetensors_tensor *tensor, const char *path, const uint8_t *data)
{
    char error[ERROR_SIZE];
    double *values = safetensors_load(file, tensor, error, sizeof error);
    if (values == NULL) {
        fuzz_check_message(error, path);
        return;
    }
    for (size_t i = 0; i < tensor->count; ++i)
        FUZZ_CHECK(isfinite(values[i]));
    FUZZ_CHECK(tensor->dtype != DTYPE_F64 || tensor->bytes == 0 || memcmp(values, data, tensor->bytes) == 0);
    free(values);
}

/* A tensor is found under its name and in its shape only. */
static void check_names(const safetensors *file, const safetensors_tensor *tensor, const char *path)
{
    char error[ERROR_SIZE];
    int64_t shape[SAFETENSORS_MAX_RANK + 1];
    memcpy(shape, tensor->shape, sizeof tensor->shape);
    FUZZ_CHECK(safetensors_find(file, tensor->name) == tensor);
    if (strlen(tensor->name) > 900)
        return; /* longer than any name with its prefix may be */
    FUZZ_CHECK(safetensors_expect(file, "", tensor->name, shape, tensor->rank, error, sizeof error) == tensor);
    if (tensor->rank > 0) {
        ++shape[0];
        FUZZ_CHECK(safetensors_expect(file, "", tensor->name, shape, tensor->rank, error, sizeof error) == NULL);
        fuzz_check_message(error, path);
    }
    const safetensors_tensor *longer = safetensors_expect(file, "x.", tensor->name, NULL, 0, error, sizeof error);
    if (longer == NULL)
        fuzz_check_message(error, path);
}

/* Bytes of a tensor in the file. */
static size_t stored_bytes(const safetensors_tensor *tensor)
{
    return tensor->fp8 ? tensor->count : tensor->halves ? tensor->count / 2 : tensor->bytes;
}

/* Bytes of the scales that are no tensor of their own. */
static size_t scale_bytes(const safetensors_tensor *tensor)
{
    if (tensor->fp8) {
        const size_t blocks = (((size_t)tensor->shape[0] + 127) / 128) * (((size_t)tensor->shape[1] + 127) / 128);
        return blocks * (tensor->scales == DTYPE_F32 ? 4 : 2);
    }
    if (tensor->blocks != NULL && tensor->count > 0) {
        const size_t width = (size_t)tensor->shape[tensor->rank - 1], numbers = safetensors_blocks_name(tensor)[3] == '1' ? 2 : 1;
        return tensor->count / width * ((width + 31) / 32) * numbers * 2;
    }
    const bool has = tensor->dtype == DTYPE_I8 && tensor->count > 0;
    return has ? sizeof(float) * (tensor->rank > 0 ? tensor->count / (size_t)tensor->shape[tensor->rank - 1] : 1) : 0;
}

static void check_file(const safetensors *file, const char *path, const uint8_t *data, size_t size)
{
    uint64_t header;
    FUZZ_CHECK(size >= sizeof header);
    memcpy(&header, data, sizeof header);
    FUZZ_CHECK(header <= size - sizeof header);
    const size_t count = safetensors_count(file), start = sizeof header + (size_t)header;
    size_t bytes = 0;
    for (size_t i = 0; i < count; ++i) {
        const safetensors_tensor *tensor = safetensors_at(file, i);
        FUZZ_CHECK(i == 0 || strcmp(safetensors_at(file, i - 1)->name, tensor->name) < 0);
        FUZZ_CHECK(!__builtin_add_overflow(bytes, stored_bytes(tensor), &bytes));
        FUZZ_CHECK(scale_bytes(tensor) == 0 || (tensor->scales_at >= start && tensor->scales_at <= size - scale_bytes(tensor)));
        bytes += scale_bytes(tensor);
    }
    FUZZ_CHECK(bytes == size - start);
    for (size_t i = 0; i < count; ++i) {
        const safetensors_tensor *tensor = safetensors_at(file, i);
        FUZZ_CHECK(tensor->at >= start && tensor->at <= size && stored_bytes(tensor) <= size - tensor->at);
        check_values(file, tensor, path, data + tensor->at);
        check_names(file, tensor, path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 4 && memcmp(data, "GGUF", 4) == 0)
        return 0; /* is opened as a GGUF file: gguf_target.c */
    const char *path = fuzz_file("input.safetensors", data, size);
    char error[ERROR_SIZE];
    safetensors *file = safetensors_open(path, error, sizeof error);
    if (file == NULL)
        fuzz_check_message(error, path);
    else
        check_file(file, path, data, size);
    safetensors_close(file);
    return 0;
}
