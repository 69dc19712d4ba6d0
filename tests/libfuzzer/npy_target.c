/* Matrices in NumPy's format: an accepted one has as many values as its file, and survives being written. */
#include "tests/libfuzzer/fuzz.h"

#include "gen/weights/npy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("input.npy", data, size);
    char error[512];
    size_t rows, columns;
    double *any = npy_read_any(path, &rows, &columns, error, sizeof error);
    if (any == NULL)
        fuzz_check_message(error, path);
    else
        FUZZ_CHECK(columns > 0 && rows * columns * sizeof(float) <= size);
    float *values = npy_read_f32(path, &rows, &columns, error, sizeof error);
    if (values == NULL) {
        fuzz_check_message(error, path);
        free(any);
        return 0;
    }
    const size_t bytes = rows * columns * sizeof *values;
    FUZZ_CHECK(columns > 0 && bytes <= size && (rows == 0 || bytes / rows == columns * sizeof *values));
    FUZZ_CHECK(any != NULL);
    bool as_they_are = bytes == 0 || memcmp(values, data + size - bytes, bytes) == 0;
    bool rounded = 2 * bytes <= size; /* float64, which is read as float32 */
    for (size_t i = 0; rounded && i < rows * columns; ++i)
        rounded = isnan(any[i]) ? isnan(values[i]) : values[i] == (float)any[i];
    FUZZ_CHECK(as_they_are || rounded);
    free(any);

    size_t again_rows, again_columns;
    FUZZ_CHECK(npy_write_f32(path, rows, columns, values, error, sizeof error));
    float *again = npy_read_f32(path, &again_rows, &again_columns, error, sizeof error);
    FUZZ_CHECK(again != NULL && again_rows == rows && again_columns == columns);
    FUZZ_CHECK(bytes == 0 || memcmp(again, values, bytes) == 0);
    free(again);
    free(values);
    return 0;
}
