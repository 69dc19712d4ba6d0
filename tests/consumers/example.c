#include "tiny.h"

#include <stdio.h>

/* Reads tokens of TINY_D floats from standard input, writes tokens of TINY_D_OUT floats to standard output. */
int main(void)
{
    static _Alignas(TINY_ALIGN) unsigned char blob[TINY_WEIGHTS_BYTES], scratch[TINY_SCRATCH_BYTES];
    float x[TINY_D], y[TINY_D_OUT];
    tiny_weights weights;
    FILE *file = fopen("tiny.bin", "rb"); /* lookupc pack tiny.lua --weights w.safetensors -o tiny.bin */
    if (!file)
        return perror("tiny.bin"), 1;
    const int status = tiny_bind(blob, fread(blob, 1, sizeof blob, file), &weights);
    if (status != TINY_OK)
        return fprintf(stderr, "tiny.bin: %s\n", tiny_error(status)), 1;
    while (fread(x, sizeof x, 1, stdin) == 1) {
        tiny_ffn(&weights, x, y, 1, scratch);
        fwrite(y, sizeof y, 1, stdout);
    }
    return 0;
}
