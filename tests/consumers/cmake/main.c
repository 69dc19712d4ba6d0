/* Applies a layer whose weights are a part of this program to one token. */
#include "tiny_linked.h"

#include <stdio.h>

int main(void)
{
    static _Alignas(TINY_ALIGN) unsigned char scratch[TINY_SCRATCH_BYTES];
    float x[TINY_D] = {1.0f, -1.0f}, y[TINY_D_OUT];
    tiny_weights weights;
    if (tiny_bind_linked(&weights) != TINY_OK)
        return 1;
    tiny_ffn(&weights, x, y, 1, scratch);
    for (int i = 0; i < TINY_D_OUT; ++i)
        printf("%.5g\n", (double)y[i]);
    return 0;
}
