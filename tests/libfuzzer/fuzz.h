/* What the fuzz targets share: the input as a file, a Lua state that lives as long as the process, and how a finding is reported.
   A target is a file *_target.c with libFuzzer's LLVMFuzzerTestOneInput. */
#ifndef LOOKUPC_TESTS_FUZZ_H
#define LOOKUPC_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Makes data[size] the file `name` in this process's scratch folder, and returns its path, which is valid until the next call. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t size);

/* Ends the process with that text: libFuzzer keeps the input as a finding. */
_Noreturn void fuzz_finding(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A finding unless the condition holds. */
#define FUZZ_CHECK(condition)                                                                                                              \
    do {                                                                                                                                   \
        if (!(condition))                                                                                                                  \
            fuzz_finding("%s:%d: not true: %s", __FILE__, __LINE__, #condition);                                                           \
    } while (false)

/* A finding unless the message is what users see: "path: ..." in one line. */
void fuzz_check_message(const char *message, const char *path);

/* A copy of data[size] in memory of exactly that size, aligned to 64 bytes, which the caller frees. */
unsigned char *fuzz_blob(const uint8_t *data, size_t size);

/* The same of blob_bytes, cut or with zeros behind, and with the header of a whole blob: that of the file `fresh` in the folder of bundles,
   and the right checksum. */
unsigned char *fuzz_mended_blob(const char *fresh, size_t blob_bytes, const uint8_t *data, size_t size);

/* Memory of that size, aligned to 64 bytes, which the caller frees; its bytes are those of a NaN. */
void *fuzz_memory(size_t size);

/* Writes the input to a file and calls the function that the Lua module returns with its path. The module comes from the working
   folder, which is the repository's. A Lua error is a finding. Lines of Lua that run count as coverage. Returns 0. */
int fuzz_lua(const char *module, const uint8_t *data, size_t size);

#endif
