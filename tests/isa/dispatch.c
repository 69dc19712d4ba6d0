/* Prints the number of the instruction set that a bundle of the model tiny chooses on this CPU, and whether its outputs for one token and
   for many agree with those of portable C; or the error code of bind. The arguments are the weights file and, where it shall
   ask for AMX before, anything else. */
#include "tiny.h"

#include <stdio.h>

enum { MANY = 70 };

static unsigned char blob[TINY_WEIGHTS_BYTES] __attribute__((aligned(64)));
static unsigned char scratch[TINY_SCRATCH_BYTES] __attribute__((aligned(64)));
static float x[MANY * TINY_D], y[MANY * TINY_D_OUT], portable[MANY * TINY_D_OUT];

/* Whether the chosen kernels make of the first tokens what portable ones do. */
static int agree(tiny_weights *weights, unsigned tokens)
{
    const int chosen = weights->isa;
    float largest = 0.0f, wrong = 0.0f;
    tiny_ffn(weights, x, y, tokens, scratch);
    weights->isa = 0;
    tiny_ffn(weights, x, portable, tokens, scratch);
    weights->isa = chosen;
    for (unsigned i = 0; i < tokens * TINY_D_OUT; ++i) {
        const float size = portable[i] < 0.0f ? -portable[i] : portable[i];
        const float difference = y[i] < portable[i] ? portable[i] - y[i] : y[i] - portable[i];
        largest = largest > size ? largest : size;
        wrong = wrong > difference ? wrong : difference;
    }
    return largest > 0.0f && wrong <= 1e-5f * largest;
}

int main(int count, char **arguments)
{
    tiny_weights weights;
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : NULL;
    if (!file || fread(blob, 1, sizeof blob, file) != sizeof blob)
        return 2;
    fclose(file);
#ifdef TINY_ERROR_AMX
    if (count > 2)
        tiny_request_amx();
#endif
    const int code = tiny_bind(blob, sizeof blob, &weights);
    if (code != TINY_OK) {
        printf("error %d\n", code);
        return 0;
    }
    for (unsigned i = 0; i < MANY * TINY_D; ++i)
        x[i] = (float)(i * 37 % 1009) / 504.0f - 1.0f;
    printf("%d %s\n", weights.isa, agree(&weights, 1) && agree(&weights, MANY) ? "right" : "wrong");
    return 0;
}
