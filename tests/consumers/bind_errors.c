/* What tiny_bind answers to a good blob, TINY.bin on the command line, and to damage of every kind. */
#include "tiny.h"

#include <stdio.h>
#include <string.h>

static _Alignas(TINY_ALIGN) unsigned char good[TINY_WEIGHTS_BYTES], blob[TINY_WEIGHTS_BYTES + TINY_ALIGN];
static tiny_weights weights;
static int failures;

static void expect(const char *what, int expected, int code)
{
    if (code != expected) {
        printf("bind_errors: %s: %d, expected %d\n", what, code, expected);
        ++failures;
    }
    if (code != TINY_OK && weights.projection != NULL) {
        printf("bind_errors: %s: wrote to weights\n", what);
        ++failures;
    }
    memset(&weights, 0, sizeof weights);
}

static void expect_flipped(size_t first, size_t last, int expected)
{
    for (size_t bit = 8 * first; bit < 8 * last; ++bit) {
        char what[64];
        memcpy(blob, good, sizeof good);
        blob[bit / 8] = (unsigned char)(blob[bit / 8] ^ 1 << bit % 8);
        snprintf(what, sizeof what, "bit %zu of byte %zu", bit % 8, bit / 8);
        expect(what, expected, tiny_bind(blob, sizeof good, &weights));
    }
}

int main(int count, char **arguments)
{
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file || fread(good, 1, sizeof good, file) != sizeof good)
        return 1;
    expect("good", TINY_OK, tiny_bind(good, sizeof good, &weights));
    expect("no blob", TINY_ERROR_NULL, tiny_bind(NULL, sizeof good, &weights));
    expect("no weights", TINY_ERROR_NULL, tiny_bind(good, sizeof good, NULL));
    for (size_t at = 1; at < TINY_ALIGN; ++at) {
        memcpy(blob + at, good, sizeof good);
        expect("misaligned", TINY_ERROR_ALIGNMENT, tiny_bind(blob + at, sizeof good, &weights));
    }
    static const size_t sizes[] = {0, 1, 63, 64, sizeof good / 2, sizeof good - 1, sizeof good + 1, (size_t)-1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        expect("size", TINY_ERROR_SIZE, tiny_bind(good, sizes[i], &weights));
    expect_flipped(0, 8, TINY_ERROR_MAGIC);
    expect_flipped(8, 16, TINY_ERROR_VERSION);
    expect_flipped(16, 32, TINY_ERROR_MODEL);
    expect_flipped(32, 40, TINY_ERROR_SIZE);
    expect_flipped(40, 48, TINY_ERROR_CHECKSUM);
    expect_flipped(64, 80, TINY_ERROR_CHECKSUM);
    expect_flipped(sizeof good / 2, sizeof good / 2 + 16, TINY_ERROR_CHECKSUM);
    expect_flipped(sizeof good - 8, sizeof good, TINY_ERROR_CHECKSUM);
    return failures > 0;
}
