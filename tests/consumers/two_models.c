/* Two models in one program, as C and as C++: TINY.bin OTHER.bin on the command line; from standard input TOKENS tokens
   of tiny and TOKENS of other, to standard output their results. */
#include "other.h"
#include "tiny.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 7 };

static void *aligned(size_t bytes)
{
    void *memory = NULL;
    return posix_memalign(&memory, 64, bytes) == 0 ? memory : NULL;
}

static void *read_blob(const char *path, size_t bytes)
{
    void *blob = aligned(bytes);
    FILE *file = fopen(path, "rb");
    if (!blob || !file || fread(blob, 1, bytes, file) != bytes)
        exit(1);
    fclose(file);
    return blob;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 1;
    void *tiny_blob = read_blob(arguments[1], TINY_WEIGHTS_BYTES), *other_blob = read_blob(arguments[2], OTHER_WEIGHTS_BYTES);
    void *scratch = aligned(TINY_SCRATCH_BYTES > OTHER_SCRATCH_BYTES ? TINY_SCRATCH_BYTES : OTHER_SCRATCH_BYTES);
    tiny_weights tiny;
    other_weights other;
    if (!scratch || tiny_bind(tiny_blob, TINY_WEIGHTS_BYTES, &tiny) != TINY_OK ||
        other_bind(other_blob, OTHER_WEIGHTS_BYTES, &other) != OTHER_OK)
        return 2;
    /* the blob of one is not the blob of the other, and the refusal leaves the weights as they were */
    if (tiny_bind(other_blob, TINY_WEIGHTS_BYTES, &tiny) != TINY_ERROR_MODEL ||
        other_bind(tiny_blob, OTHER_WEIGHTS_BYTES, &other) != OTHER_ERROR_MODEL)
        return 3;

    static float x_tiny[TOKENS * TINY_D], y_tiny[TOKENS * TINY_D_OUT], x_other[TOKENS * OTHER_D], y_other[TOKENS * OTHER_D_OUT];
    if (fread(x_tiny, sizeof x_tiny, 1, stdin) != 1 || fread(x_other, sizeof x_other, 1, stdin) != 1)
        return 4;
    tiny_ffn(&tiny, x_tiny, y_tiny, TOKENS, scratch);
    other_ffn(&other, x_other, y_other, TOKENS, scratch);
    fwrite(y_tiny, sizeof y_tiny, 1, stdout);
    fwrite(y_other, sizeof y_other, 1, stdout);
    free(tiny_blob);
    free(other_blob);
    free(scratch);
    return 0;
}
