/* What fuzz targets of blobs share: the input is a blob, as it is and with the header of a whole one. Whoever includes this has defined
   MODEL(word) and MACRO(word), the model's symbols and macros, BLOB, the name of a whole blob, and run(). */
#ifndef LOOKUPC_TESTS_FUZZ_BIND_H
#define LOOKUPC_TESTS_FUZZ_BIND_H

#include "tests/libfuzzer/fuzz.h"

#include <stdlib.h>
#include <string.h>

typedef MODEL(weights) blob_weights;

static void run(const blob_weights *weights);

/* Binds the blob, which is freed, and runs it if it is accepted. Returns what bind returned. */
static int bind(unsigned char *blob, size_t size)
{
    blob_weights weights, untouched;
    memset(&weights, 0x55, sizeof weights);
    untouched = weights;
    const int code = MODEL(bind)(blob, size, &weights);
    if (code == MACRO(OK)) {
        FUZZ_CHECK(size == MACRO(WEIGHTS_BYTES));
        run(&weights);
    } else {
        FUZZ_CHECK(code > MACRO(OK) && code <= MACRO(ERROR_CPU));
        FUZZ_CHECK(memcmp(&weights, &untouched, sizeof weights) == 0);
    }
    free(blob);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bind(fuzz_blob(data, size), size);
    FUZZ_CHECK(bind(fuzz_mended_blob(BLOB, MACRO(WEIGHTS_BYTES), data, size), MACRO(WEIGHTS_BYTES)) == MACRO(OK));
    return 0;
}

#endif
