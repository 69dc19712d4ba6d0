/* A GGUF file that is cut off anywhere, or has any wrong byte in its header, is refused in one line or still a good one. */
#include "tests/support/scratch.h"

#include "gen/weights/safetensors.h"

static const char *const seeds[] = {"tests/libfuzzer/corpus/gguf/llama.gguf", "tests/libfuzzer/corpus/gguf/types.gguf"};

static unsigned char *contents(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* Whether a file of bytes[size] is accepted; its tensors are read then. */
static bool accepted(const unsigned char *bytes, size_t size)
{
    char error[400] = "";
    scratch_write(bytes, size);
    safetensors *file = safetensors_open(scratch_path, error, sizeof error);
    if (file == NULL)
        assert_one_line(error);
    for (size_t i = 0; file != NULL && i < safetensors_count(file); ++i) {
        double *values = safetensors_load(file, safetensors_at(file, i), error, sizeof error);
        if (values == NULL)
            assert_one_line(error);
        free(values);
    }
    safetensors_close(file);
    return file != NULL;
}

/* The first byte of data. */
static size_t start_of_data(void)
{
    char error[400] = "";
    safetensors *file = safetensors_open(scratch_path, error, sizeof error);
    assert_non_null(file);
    size_t start = SIZE_MAX;
    for (size_t i = 0; i < safetensors_count(file); ++i)
        start = safetensors_at(file, i)->at < start ? safetensors_at(file, i)->at : start;
    safetensors_close(file);
    return start;
}

static void refuses_what_is_cut_off(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; ++i) {
        size_t size;
        unsigned char *bytes = contents(seeds[i], &size);
        assert_true(accepted(bytes, size));
        const size_t data = start_of_data();
        for (size_t cut = 4; cut < data; ++cut)
            assert_false(accepted(bytes, cut));
        for (size_t cut = data; cut + 32 < size; cut += 61)
            assert_false(accepted(bytes, cut));
        free(bytes);
    }
}

static void takes_any_byte_of_a_header(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; ++i) {
        size_t size;
        unsigned char *bytes = contents(seeds[i], &size);
        assert_true(accepted(bytes, size));
        const size_t data = start_of_data();
        for (size_t at = 4; at < data; ++at) {
            const unsigned char own = bytes[at];
            const unsigned char others[] = {0, (unsigned char)(own + 1), 127, 255};
            for (size_t k = 0; k < sizeof others; ++k) {
                bytes[at] = others[k];
                (void)accepted(bytes, size);
            }
            bytes[at] = own;
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_cut_off),
        cmocka_unit_test(takes_any_byte_of_a_header),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
