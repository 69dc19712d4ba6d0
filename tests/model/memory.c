/* Calls a whole model with memory of just the size that its header asks for, none of it cleared, and writes all results: under valgrind
   every byte read before it was written, and every one beside it, is an error. memory BLOB [BYTE]: memory starts with that byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ENCODER
#include "sentences.h"
#define M(name) sentences_##name
#define SIZE(name) SENTENCES_##name
#else
#include "writer.h"
#define M(name) writer_##name
#define SIZE(name) WRITER_##name
#endif

static const char text[] = "A cat, caf\xc3\xa9 cats 12 and\n";
enum { LENGTH = sizeof text - 1 };

static int fill = -1; /* memory starts with this byte, -1: as it is */

static void *memory(size_t bytes)
{
    void *const block = aligned_alloc(SIZE(ALIGN), (bytes + SIZE(ALIGN) - 1) / SIZE(ALIGN) * SIZE(ALIGN));
    if (block == NULL)
        exit(3);
    if (fill >= 0)
        memset(block, fill, bytes);
    return block;
}

static void put(const void *from, size_t bytes)
{
    if (fwrite(from, 1, bytes, stdout) != bytes)
        exit(3);
}

static void must(int status, const char *call)
{
    if (status != SIZE(OK)) {
        fprintf(stderr, "%s: %s\n", call, M(error)(status));
        exit(3);
    }
}

int main(int count, char **arguments)
{
    FILE *const file = count >= 2 ? fopen(arguments[1], "rb") : NULL;
    unsigned char *const blob = memory(SIZE(WEIGHTS_BYTES));
    if (file == NULL || fread(blob, 1, SIZE(WEIGHTS_BYTES), file) != SIZE(WEIGHTS_BYTES))
        return 3;
    fclose(file);
    fill = count > 2 ? atoi(arguments[2]) : -1;
    M(weights) weights;
    must(M(bind)(blob, SIZE(WEIGHTS_BYTES), &weights), "bind");

    void *const scratch = memory(SIZE(SCRATCH_BYTES)), *const work = malloc(SIZE(TOKENIZE_SCRATCH)(LENGTH));
    char *const words = malloc(LENGTH);
    int32_t *const ids = malloc(SIZE(CONTEXT) * sizeof *ids);
    memcpy(words, text, LENGTH);
    const ptrdiff_t n = M(tokenize)(&weights, words, LENGTH, ids, SIZE(CONTEXT), work, SIZE(TOKENIZE_SCRATCH)(LENGTH));
    if (n < 4)
        return 4;
    put(ids, (size_t)n * sizeof *ids);
    const size_t row = SIZE(D_OUT) * sizeof(float);
    float *const y = malloc((size_t)n * row);
#ifdef ENCODER
    const size_t offsets[] = {0, 1, 1 + (size_t)n / 2, (size_t)n};
    must(M(encode)(&weights, ids, (size_t)n, y, scratch), "encode");
    put(y, row);
    must(M(encode_batch)(&weights, ids, offsets, 3, y, scratch), "encode_batch");
    put(y, 3 * row);
#else
    void *const state = memory(SIZE(STATE_BYTES)), *const step_scratch = memory(SIZE(STEP_SCRATCH_BYTES));
    M(start)(state);
    must(M(prefill)(&weights, state, ids, 1, y, scratch), "prefill");
    put(y, row);
    must(M(prefill_all)(&weights, state, ids + 1, (size_t)n - 3, y, scratch), "prefill_all");
    put(y, ((size_t)n - 3) * row);
    for (ptrdiff_t i = n - 2; i < n; ++i) {
        must(M(step)(&weights, state, ids[i], y, step_scratch), "step");
        put(y, row);
    }
    free(state);
    free(step_scratch);
#endif
    free(y);
    free(ids);
    free(words);
    free(work);
    free(scratch);
    free(blob);
    return 0;
}
