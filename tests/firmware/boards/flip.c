/* Whether bind finds every flipped bit of the weights that are read from a file, for a bundle of either check. Compiled like run.c. */
#include MODEL_HEADER

#include <stdio.h>

static unsigned char blob[MACRO(WEIGHTS_BYTES) + 1] __attribute__((aligned(64)));

int main(int count, char **arguments)
{
    MODEL(weights) weights;
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : NULL;
    if (!file || fread(blob, 1, sizeof blob, file) != MACRO(WEIGHTS_BYTES))
        return 2;
    fclose(file);
    if (MODEL(bind)(blob, MACRO(WEIGHTS_BYTES), &weights) != MACRO(OK) || MODEL(bind_linked)(&weights) != MACRO(OK))
        return 3;
    if (MODEL(bind)(blob + 1, MACRO(WEIGHTS_BYTES), &weights) != MACRO(ERROR_ALIGNMENT) ||
        MODEL(bind)(blob, MACRO(WEIGHTS_BYTES) - 1, &weights) != MACRO(ERROR_SIZE) ||
        MODEL(bind)(NULL, MACRO(WEIGHTS_BYTES), &weights) != MACRO(ERROR_NULL) ||
        MODEL(bind)(blob, MACRO(WEIGHTS_BYTES), NULL) != MACRO(ERROR_NULL))
        return 4;
    /* All bits of the header and of the end, and every FLIP_STRIDEth of the others. */
    for (unsigned long bit = 0; bit < 8ul * MACRO(WEIGHTS_BYTES);
         bit += bit < 512 || bit + 512 > 8ul * MACRO(WEIGHTS_BYTES) ? 1 : FLIP_STRIDE) {
        blob[bit / 8] = (unsigned char)(blob[bit / 8] ^ 1u << bit % 8);
        if (MODEL(bind)(blob, MACRO(WEIGHTS_BYTES), &weights) != MACRO(ERROR_CHECKSUM)) {
            printf("bit %lu\n", bit);
            return 5;
        }
        blob[bit / 8] = (unsigned char)(blob[bit / 8] ^ 1u << bit % 8);
    }
    return 0;
}
