/* The same calls in a program of one thread and in an OpenMP build: BLOB COUNT... on the command line, y of so many tokens to standard
   output, once from x and once in place. */
#include "tiny.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *aligned(size_t bytes)
{
    void *memory = NULL;
    return posix_memalign(&memory, TINY_ALIGN, bytes) == 0 ? memory : NULL;
}

int main(int count, char **arguments)
{
    unsigned char *blob = aligned(TINY_WEIGHTS_BYTES), *scratch = aligned(TINY_SCRATCH_BYTES);
    FILE *file = count > 2 ? fopen(arguments[1], "rb") : NULL;
    tiny_weights weights;
    if (!blob || !scratch || !file || tiny_bind(blob, fread(blob, 1, TINY_WEIGHTS_BYTES, file), &weights) != TINY_OK)
        return 1;
    memset(scratch, 0xA5, TINY_SCRATCH_BYTES);
    for (int i = 2; i < count; ++i) {
        const size_t tokens = strtoul(arguments[i], NULL, 10), size = tokens * TINY_D;
        float *x = malloc(size * sizeof *x), *y = malloc(size * sizeof *y);
        if (!x || !y)
            return 2;
        unsigned state = 1;
        for (size_t k = 0; k < size; ++k) {
            state = state * 1664525u + 1013904223u;
            x[k] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
        tiny_ffn(&weights, x, y, tokens, scratch);
        fwrite(y, sizeof *y, size, stdout);
        tiny_ffn(&weights, x, x, tokens, scratch);
        fwrite(x, sizeof *x, size, stdout);
        free(x);
        free(y);
    }
#ifdef TINY_OPENMP
    /* every thread has worked in its part of scratch */
    for (int part = 0; part < TINY_OPENMP; ++part) {
        size_t touched = 0;
        for (size_t k = 0; k < TINY_SCRATCH_BYTES / TINY_OPENMP; ++k)
            touched += scratch[(size_t)part * (TINY_SCRATCH_BYTES / TINY_OPENMP) + k] != 0xA5;
        if (touched == 0)
            return 3;
    }
#endif
    return 0;
}
