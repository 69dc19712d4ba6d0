/* Prints the number of the instruction set that a bundle of the model tiny chooses on this CPU, and whether one token's output agrees
   with that of portable C. The argument is the weights file. */
#include "tiny.h"

#include <stdio.h>

static unsigned char blob[TINY_WEIGHTS_BYTES] __attribute__((aligned(64)));
static unsigned char scratch[TINY_SCRATCH_BYTES] __attribute__((aligned(64)));
static float x[TINY_D], y[TINY_D_OUT], portable[TINY_D_OUT];

int main(int count, char **arguments)
{
    tiny_weights weights;
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : NULL;
    if (!file || fread(blob, 1, sizeof blob, file) != sizeof blob)
        return 2;
    fclose(file);
    if (tiny_bind(blob, sizeof blob, &weights) != TINY_OK)
        return 3;
    for (unsigned i = 0; i < TINY_D; ++i)
        x[i] = (float)(i * 37 % 64) / 32.0f - 1.0f;
    const int chosen = weights.isa;
    tiny_ffn(&weights, x, y, 1, scratch);
    weights.isa = 0;
    tiny_ffn(&weights, x, portable, 1, scratch);
    float largest = 0.0f, wrong = 0.0f;
    for (unsigned i = 0; i < TINY_D_OUT; ++i) {
        const float size = portable[i] < 0.0f ? -portable[i] : portable[i];
        const float difference = y[i] < portable[i] ? portable[i] - y[i] : y[i] - portable[i];
        largest = largest > size ? largest : size;
        wrong = wrong > difference ? wrong : difference;
    }
    printf("%d %s\n", chosen, largest > 0.0f && wrong <= 1e-5f * largest ? "right" : "wrong");
    return 0;
}
