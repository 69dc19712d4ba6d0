/* The index of a checkpoint of two files: an accepted one opens no others and names exactly their tensors. */
#include "tests/libfuzzer/fuzz.h"

#include "gen/weights/shards.h"

#include <stdio.h>
#include <string.h>

enum { ERROR_SIZE = 1024 };

/* Writes a file with one float32 of that name. */
static void write_shard(const char *file, const char *tensor)
{
    char bytes[256];
    const int length = snprintf(bytes + 8, sizeof bytes - 8, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", tensor);
    const uint64_t header = (uint64_t)length;
    memcpy(bytes, &header, sizeof header);
    memset(bytes + 8 + length, 0, 4);
    fuzz_file(file, (const uint8_t *)bytes, 8 + (size_t)length + 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool written;
    if (!written) {
        write_shard("a.safetensors", "x");
        write_shard("b.safetensors", "y");
        written = true;
    }
    const char *path = fuzz_file("input.json", data, size);
    char error[ERROR_SIZE];
    shards *checkpoint = shards_open(path, error, sizeof error);
    if (checkpoint == NULL) {
        /* the index, or a file that it names */
        const char *slash = strrchr(path, '/');
        char folder[256];
        snprintf(folder, sizeof folder, "%.*s", (int)(slash + 1 - path), path);
        FUZZ_CHECK(strncmp(error, folder, strlen(folder)) == 0 && strstr(error, ": ") != NULL && strchr(error, '\n') == NULL);
        return 0;
    }
    FUZZ_CHECK(shards_count(checkpoint) >= 1 && shards_count(checkpoint) <= 2);
    size_t tensors = 0;
    for (size_t i = 0; i < shards_count(checkpoint); ++i)
        tensors += safetensors_count(shards_at(checkpoint, i));
    const int64_t shape = 1;
    for (const char *name = "xy"; *name != '\0'; ++name) {
        const char text[2] = {*name, '\0'};
        const shards_wanted wanted = {.name = text, .shape = &shape, .rank = 1};
        const safetensors *file;
        if (shards_have(checkpoint, text)) {
            FUZZ_CHECK(shards_expect(checkpoint, wanted, &file, error, sizeof error) != NULL);
            --tensors;
        } else {
            FUZZ_CHECK(shards_expect(checkpoint, wanted, &file, error, sizeof error) == NULL);
        }
    }
    FUZZ_CHECK(tensors == 0);
    shards_close(checkpoint);
    return 0;
}
