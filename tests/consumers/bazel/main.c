/* Applies a layer whose weights lie in tiny.bin to one token. */
#include "tiny.h"

#include <stdio.h>

int main(void)
{
    static _Alignas(TINY_ALIGN) unsigned char blob[TINY_WEIGHTS_BYTES], scratch[TINY_SCRATCH_BYTES];
    float x[TINY_D] = {1.0f, -1.0f}, y[TINY_D_OUT];
    tiny_weights weights;
    FILE *file = fopen("tiny.bin", "rb");
    if (!file || tiny_bind(blob, fread(blob, 1, sizeof blob, file), &weights) != TINY_OK)
        return 1;
    tiny_ffn(&weights, x, y, 1, scratch);
    for (int i = 0; i < TINY_D_OUT; ++i)
        printf("%.5g\n", (double)y[i]);
    return 0;
}
