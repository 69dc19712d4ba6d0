/* The safetensors reader converts exactly and refuses every breach of the format in one line; the writer leaves a whole file or none. */
#include "tests/support/scratch.h"

#include "gen/weights/safetensors.h"

#include <math.h>

/* Makes scratch_path a file with that header and data[bytes]; data may be NULL for zeros. */
static void write_tensors(const char *header, const void *data, size_t bytes)
{
    const uint64_t length = strlen(header);
    unsigned char *file = calloc(8 + length + bytes, 1);
    assert_non_null(file);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    if (data != NULL) {
        memcpy(file + 8 + length, data, bytes);
    }
    scratch_write(file, 8 + length + bytes);
    free(file);
}

static void expect_refused(const char *rule)
{
    char error[400] = "";
    assert_null(safetensors_open(scratch_path, error, sizeof error));
    assert_refused(error, rule);
}

static safetensors *open_good(void)
{
    char error[400] = "";
    safetensors *file = safetensors_open(scratch_path, error, sizeof error);
    assert_string_equal(error, "");
    assert_non_null(file);
    return file;
}

/* ---- opening ---- */

static void refuses_bad_lengths(void **state)
{
    (void)state;
    unlink(scratch_path);
    expect_refused("No such file or directory");
    scratch_write("", 0);
    expect_refused("0 bytes: too short for a safetensors file");
    scratch_write("\2\0\0\0\0\0\0", 7);
    expect_refused("7 bytes: too short for a safetensors file");
    scratch_write("\0\0\0\0\0\0\0\0{}", 10);
    expect_refused("header: length 0: must be from 1 to 100000000 bytes");
    scratch_write("\1\xe1\xf5\5\0\0\0\0{}", 10);
    expect_refused("header: length 100000001: must be from 1 to 100000000 bytes");
    scratch_write("\0\0\0\0\0\0\0\x80{}", 10);
    expect_refused("header: length 9223372036854775808: must be from 1 to 100000000 bytes");
    scratch_write("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    expect_refused("header: length 18446744073709551615: must be from 1 to 100000000 bytes");
    scratch_write("\3\0\0\0\0\0\0\0{}", 10);
    expect_refused("header: length 3: the file has only 2 bytes after it");
    scratch_write("\0\xe1\xf5\5\0\0\0\0{}", 10);
    expect_refused("header: length 100000000: the file has only 2 bytes after it");

    char error[400];
    assert_null(safetensors_open("/", error, sizeof error));
    assert_string_equal(error, "/: is not a regular file");
}

static void refuses_bad_headers(void **state)
{
    (void)state;
    /* each with 16 bytes of data */
    static const struct {
        const char *header;
        const char *rule;
    } cases[] = {
        {"[]", "header: must start with '{'"},
        {" {}", "header: must start with '{'"},
        {"{", "header: byte 1: string or '}' expected near end of file"},
        {"{} {}", "header: byte 4: end of file expected near '{'"},
        {"{\"a\": \"\\u0000\"}", "header: byte 14: \\u0000 is not allowed without JSON_ALLOW_NUL near '\"\\u0000\"'"},
        {"{\"a\": 1, \"a\": 2}", "header: byte 12: duplicate object key near '\"a\"'"},
        {"{\"a\": {\"dtype\": \"F32\", \"dtype\": \"F32\"}}", "header: byte 30: duplicate object key near '\"dtype\"'"},
        {"{\"a\n\": 1}", "header: byte 3: unexpected newline near '\"a'"},
        {"{\"a\": 1}", "tensor a: must be an object"},
        {"{\"a\": []}", "tensor a: must be an object"},
        {"{\"a\": {}}", "tensor a: dtype: must be a string"},
        {"{\"a\\nb\": {}}", "tensor a?b: dtype: must be a string"},
        {"{\"a\": {\"dtype\": 32, \"shape\": [4], \"data_offsets\": [0, 16]}}", "tensor a: dtype: must be a string"},
        {"{\"a\": {\"dtype\": \"f32\", \"shape\": [4], \"data_offsets\": [0, 16]}}", "tensor a: dtype: f32: not a dtype of the format"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [0, 16], \"order\": 1}}", "tensor a: order: unknown key"},

        {"{\"a\": {\"dtype\": \"F32\", \"data_offsets\": [0, 16]}}", "tensor a: shape: must be an array"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": 4, \"data_offsets\": [0, 16]}}", "tensor a: shape: must be an array"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4.0], \"data_offsets\": [0, 16]}}", "tensor a: shape: dimension 0: must be an integer"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4, \"1\"], \"data_offsets\": [0, 16]}}",
         "tensor a: shape: dimension 1: must be an integer"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [-2, -2], \"data_offsets\": [0, 16]}}",
         "tensor a: shape: dimension 0: -2: must not be negative"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [9223372036854775808], \"data_offsets\": [0, 16]}}",
         "header: byte 52: too big integer near '9223372036854775808'"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4294967296, 4294967296, 2], \"data_offsets\": [0, 16]}}",
         "tensor a: shape: the number of elements overflows"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4611686018427387904, 2], \"data_offsets\": [0, 16]}}",
         "tensor a: shape: the number of bits overflows"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4,1,1,1,1,1,1,1,1], \"data_offsets\": [0, 16]}}",
         "tensor a: shape: 9 dimensions: must be at most 8"},

        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4]}}", "tensor a: data_offsets: must be two integers not below 0"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": 16}}", "tensor a: data_offsets: must be two integers not below 0"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [16]}}",
         "tensor a: data_offsets: must be two integers not below 0"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [0, 16, 16]}}",
         "tensor a: data_offsets: must be two integers not below 0"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [0, 16.0]}}",
         "tensor a: data_offsets: must be two integers not below 0"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [-16, 0]}}",
         "tensor a: data_offsets: must be two integers not below 0"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [16, 0]}}",
         "tensor a: data_offsets: [16, 0]: the end is before the begin"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [5], \"data_offsets\": [0, 20]}}",
         "tensor a: data_offsets: [0, 20]: the file has only 16 bytes of data"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [9223372036854775791, 9223372036854775807]}}",
         "tensor a: data_offsets: [9223372036854775791, 9223372036854775807]: the file has only 16 bytes of data"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [3], \"data_offsets\": [0, 16]}}",
         "tensor a: data_offsets: [0, 16]: 16 bytes, but shape and F32 need 12"},
        {"{\"a\": {\"dtype\": \"F64\", \"shape\": [2, 2], \"data_offsets\": [0, 16]}}",
         "tensor a: data_offsets: [0, 16]: 16 bytes, but shape and F64 need 32"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4, 0], \"data_offsets\": [0, 16]}}",
         "tensor a: data_offsets: [0, 16]: 16 bytes, but shape and F32 need 0"},
        {"{\"a\": {\"dtype\": \"F4\", \"shape\": [33], \"data_offsets\": [0, 16]}}",
         "tensor a: data_offsets: [0, 16]: 16 bytes, but shape and F4 need 16 and a part"},

        {"{}", "data: 16 bytes after the last tensor"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [3], \"data_offsets\": [0, 12]}}", "data: 4 bytes after the last tensor"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [3], \"data_offsets\": [4, 16]}}", "tensor a: data_offsets: a hole of 4 bytes before it"},
        {"{\"b\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [8, 16]}, \"a\": {\"dtype\": \"F32\", \"shape\": [1], "
         "\"data_offsets\": [0, 4]}}",
         "tensor b: data_offsets: a hole of 4 bytes before it"},
        {"{\"b\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [8, 16]}, \"a\": {\"dtype\": \"F32\", \"shape\": [3], "
         "\"data_offsets\": [0, 12]}}",
         "tensor b: data_offsets: overlaps tensor a"},
        {"{\"b\": {\"dtype\": \"F32\", \"shape\": [0], \"data_offsets\": [8, 8]}, \"a\": {\"dtype\": \"F32\", \"shape\": [4], "
         "\"data_offsets\": [0, 16]}}",
         "tensor b: data_offsets: overlaps tensor a"},

        {"{\"__metadata__\": [\"pt\"]}", "__metadata__: must be an object of strings"},
        {"{\"__metadata__\": {\"format\": \"pt\", \"step\": 3}}", "__metadata__: must be an object of strings"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        write_tensors(cases[i].header, NULL, 16);
        expect_refused(cases[i].rule);
    }
}

/* A deep header must not exhaust the stack, a long name must not hide the rule. */
static void refuses_extreme_headers(void **state)
{
    (void)state;
    const size_t depth = 1000000;
    char *header = calloc(6 * depth + 1, 1);
    assert_non_null(header);
    for (size_t i = 0; i < depth; ++i) {
        memcpy(header + 5 * i, "{\"a\":", 5);
    }
    write_tensors(header, NULL, 0);
    expect_refused("header: byte 10241: maximum parsing depth reached near '{'");

    memset(header, 'n', depth);
    memcpy(header, "{\"", 2);
    strcpy(header + depth, "\":0}");
    write_tensors(header, NULL, 0);
    free(header);
    char error[400];
    assert_null(safetensors_open(scratch_path, error, sizeof error));
    assert_one_line(error);
    assert_non_null(strstr(error, "nnn: must be an object"));
}

static void finds_tensors(void **state)
{
    (void)state;
    static const char header[] = "{\"tables\": {\"dtype\": \"F32\", \"shape\": [1, 2, 1], \"data_offsets\": [8, 16]},"
                                 " \"__metadata__\": {\"format\": \"pt\"},"
                                 " \"layer.0.bias\": {\"shape\": [], \"data_offsets\": [4, 8], \"dtype\": \"F32\"},"
                                 " \"empty\": {\"dtype\": \"F64\", \"shape\": [3, 0], \"data_offsets\": [8, 8]},"
                                 " \"ids\": {\"dtype\": \"I32\", \"shape\": [1], \"data_offsets\": [0, 4]}}   ";
    static const float values[4] = {0.0f, 2.5f, -1.0f, 0.125f};
    write_tensors(header, values, sizeof values);
    safetensors *file = open_good();

    assert_int_equal(safetensors_count(file), 4);
    assert_string_equal(safetensors_at(file, 0)->name, "empty");
    assert_string_equal(safetensors_at(file, 1)->name, "ids");
    assert_string_equal(safetensors_at(file, 2)->name, "layer.0.bias");
    assert_string_equal(safetensors_at(file, 3)->name, "tables");
    assert_null(safetensors_find(file, "table"));
    assert_null(safetensors_find(file, "__metadata__"));

    char error[400] = "";
    double out[2] = {7, 7};
    const safetensors_tensor *tensor = safetensors_find(file, "tables");
    assert_ptr_equal(tensor, safetensors_at(file, 3));
    assert_int_equal(tensor->rank, 3);
    assert_int_equal(tensor->shape[0], 1);
    assert_int_equal(tensor->shape[1], 2);
    assert_int_equal(tensor->shape[2], 1);
    assert_int_equal(tensor->count, 2);
    assert_int_equal(tensor->bytes, 8);
    assert_true(safetensors_read(file, tensor, 0, 2, out, error, sizeof error));
    assert_true(out[0] == -1.0 && out[1] == 0.125);
    assert_true(safetensors_read(file, tensor, 1, 1, out, error, sizeof error));
    assert_true(out[0] == 0.125);
    assert_true(safetensors_read(file, tensor, 2, 0, out, error, sizeof error));
    assert_false(safetensors_read(file, tensor, 1, 2, out, error, sizeof error));
    assert_refused(error, "tensor tables: elements from 1, 2 of them: there are only 2");
    assert_false(safetensors_read(file, tensor, 3, SIZE_MAX, out, error, sizeof error));
    assert_one_line(error);

    tensor = safetensors_find(file, "layer.0.bias");
    assert_int_equal(tensor->rank, 0);
    assert_int_equal(tensor->count, 1);
    assert_true(safetensors_read(file, tensor, 0, 1, out, error, sizeof error));
    assert_true(out[0] == 2.5);

    tensor = safetensors_find(file, "empty");
    assert_int_equal(tensor->count, 0);
    assert_true(safetensors_read(file, tensor, 0, 0, out, error, sizeof error));

    tensor = safetensors_find(file, "ids");
    assert_int_equal(tensor->dtype, DTYPE_UNREADABLE);
    assert_false(safetensors_read(file, tensor, 0, 1, out, error, sizeof error));
    assert_refused(error, "tensor ids: dtype: I32: must be F32, F16, BF16 or F64");
    safetensors_close(file);
}

static void knows_every_dtype_and_its_width(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int bytes; /* of 8 elements */
    } cases[] = {
        {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
        {"BOOL", 8},        {"U8", 8},          {"I8", 8},   {"F16", 16},    {"BF16", 16},   {"U16", 16},    {"I16", 16},    {"F32", 32},
        {"U32", 32},        {"I32", 32},        {"F64", 64}, {"U64", 64},    {"I64", 64},    {"C64", 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char header[200];
        snprintf(header, sizeof header, "{\"a\": {\"dtype\": \"%s\", \"shape\": [8], \"data_offsets\": [0, %d]}}", cases[i].name,
                 cases[i].bytes);
        write_tensors(header, NULL, (size_t)cases[i].bytes);
        safetensors *file = open_good();
        assert_string_equal(safetensors_at(file, 0)->dtype_name, cases[i].name);
        safetensors_close(file);
    }
    write_tensors("{}", NULL, 0);
    safetensors *file = open_good();
    assert_int_equal(safetensors_count(file), 0);
    assert_null(safetensors_find(file, "a"));
    safetensors_close(file);
    safetensors_close(NULL);
}

/* Integers times the scales of their rows, which are no tensor of the file. */
static void reads_integers_with_scales(void **state)
{
    (void)state;
    static const char header[] = "{\"w\": {\"dtype\": \"I8\", \"shape\": [2, 2, 3], \"data_offsets\": [16, 28]},"
                                 " \"w_scale\": {\"dtype\": \"F32\", \"shape\": [2, 2], \"data_offsets\": [0, 16]},"
                                 " \"alone\": {\"dtype\": \"I8\", \"shape\": [4], \"data_offsets\": [28, 32]}}";
    static const struct {
        float scales[4];
        signed char w[12], alone[4];
    } data = {{1.0f, 0.5f, 0.0f, -2.0f}, {1, -2, 127, -128, 4, 6, 9, 9, 9, 0, 1, -1}, {1, 2, 3, 4}};
    static const double expected[12] = {1, -2, 127, -64, 2, 3, 0, 0, 0, 0, -2, 2};
    write_tensors(header, &data, sizeof data);
    safetensors *file = open_good();
    assert_int_equal(safetensors_count(file), 2);
    assert_null(safetensors_find(file, "w_scale"));
    const safetensors_tensor *tensor = safetensors_find(file, "w");
    assert_int_equal(tensor->dtype, DTYPE_I8);
    char error[400] = "";
    for (size_t first = 0; first < 12; ++first) {
        for (size_t count = 0; count <= 12 - first; ++count) {
            double out[12];
            assert_true(safetensors_read(file, tensor, first, count, out, error, sizeof error));
            for (size_t i = 0; i < count; ++i) {
                assert_true(out[i] == expected[first + i]);
            }
        }
    }
    double out[4];
    assert_false(safetensors_read(file, safetensors_find(file, "alone"), 0, 4, out, error, sizeof error));
    assert_refused(error, "tensor alone: dtype: I8: must be F32, F16, BF16 or F64, or stand beside its rows' scales, NAME_scale in F32");
    safetensors_close(file);

    write_tensors("{\"w\": {\"dtype\": \"I8\", \"shape\": [2, 8], \"data_offsets\": [4, 20]},"
                  " \"w_scale\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}",
                  NULL, 20);
    expect_refused("tensor w_scale: 1 elements: must be 2, one for each row of w");
}

/* Half bytes times the scales of their rows, from every element on, odd ones, too; and as they are written. */
static void reads_half_bytes_with_scales(void **state)
{
    (void)state;
    static const char header[] = "{\"w\": {\"dtype\": \"U8\", \"shape\": [2, 3], \"data_offsets\": [8, 14]},"
                                 " \"w_scale_i4\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]},"
                                 " \"alone\": {\"dtype\": \"U8\", \"shape\": [2], \"data_offsets\": [14, 16]}}";
    static const struct {
        float scales[2];
        unsigned char w[6], alone[2];
    } data = {{1.0f, 0.5f}, {0x21, 0x7f, 0x98, 0x0e, 0xf1, 0x79}, {1, 2}};
    static const double expected[12] = {1, 2, -1, 7, -8, -7, -1, 0, 0.5, -0.5, -3.5, 3.5};
    write_tensors(header, &data, sizeof data);
    char error[400] = "";
    for (int written = 0; written < 2; ++written) {
        safetensors *file = open_good();
        const safetensors_tensor *tensor = safetensors_find(file, "w");
        assert_true(tensor->rank == 2 && tensor->shape[1] == 6 && tensor->count == 12 && tensor->dtype == DTYPE_I8);
        assert_null(safetensors_find(file, "w_scale_i4"));
        for (size_t first = 0; first < 12; ++first) {
            for (size_t count = 0; count <= 12 - first; ++count) {
                double out[12];
                assert_true(safetensors_read(file, tensor, first, count, out, error, sizeof error));
                for (size_t i = 0; i < count; ++i) {
                    assert_true(out[i] == expected[first + i]);
                }
            }
        }
        double out[2];
        assert_true(written || !safetensors_read(file, safetensors_find(file, "alone"), 0, 2, out, error, sizeof error));
        safetensors_close(file);
        static const safetensors_description tensors[] = {{"w", 2, {2, 6}, DTYPE_I4}, {"w_scale_i4", 1, {2}, DTYPE_F32}};
        safetensors_writer *writer = safetensors_create(scratch_path, tensors, 2, error, sizeof error);
        assert_true(safetensors_append(writer, data.w, sizeof data.w, error, sizeof error));
        assert_true(safetensors_append(writer, data.scales, sizeof data.scales, error, sizeof error));
        assert_true(safetensors_finish(writer, error, sizeof error));
    }
    write_tensors("{\"w\": {\"dtype\": \"U8\", \"shape\": [2, 8], \"data_offsets\": [4, 20]},"
                  " \"w_scale_i4\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}",
                  NULL, 20);
    expect_refused("tensor w_scale_i4: 1 elements: must be 2, one for each row of w");
}

/* Bytes in groups, the last one of three cut off: from every element on; as blocks of GGUF files, too. */
static void reads_bytes_in_groups(void **state)
{
    (void)state;
    enum { WIDTH = 70, GROUPS = 3, COUNT = 2 * WIDTH };
    struct {
        signed char w[COUNT];
        unsigned short scales[2 * GROUPS];
    } data;
    char error[400] = "";
    double expected[COUNT], out[COUNT];
    for (size_t i = 0; i < COUNT; ++i)
        data.w[i] = (signed char)(37 * i - 128);
    for (size_t i = 0; i < 2 * GROUPS; ++i) /* 1, 2, 4 … */
        data.scales[i] = (unsigned short)(15 + i) << 10;
    for (size_t i = 0; i < COUNT; ++i)
        expected[i] = data.w[i] * (double)(1 << (i / WIDTH * GROUPS + i % WIDTH / 32));
    write_tensors("{\"w\": {\"dtype\": \"I8\", \"shape\": [2, 70], \"data_offsets\": [0, 140]},"
                  " \"w_groups_q8\": {\"dtype\": \"F16\", \"shape\": [2, 3], \"data_offsets\": [140, 152]}}",
                  &data, 152);
    safetensors *file = open_good();
    const safetensors_tensor *tensor = safetensors_find(file, "w");
    assert_true(tensor->shape[1] == WIDTH && tensor->count == COUNT && tensor->dtype == DTYPE_F32 && safetensors_count(file) == 1);
    assert_string_equal(safetensors_blocks_name(tensor), "Q8_0");
    for (size_t first = 0; first < COUNT; ++first)
        for (size_t count = 0; count <= COUNT - first; ++count) {
            assert_true(safetensors_read(file, tensor, first, count, out, error, sizeof error));
            assert_memory_equal(out, expected + first, count * sizeof *out);
        }
    unsigned char blocks[GROUPS * 34];
    static const unsigned char zeros[26];
    assert_true(safetensors_read_blocks(file, tensor, WIDTH, WIDTH, blocks, error, sizeof error));
    assert_memory_equal(blocks + 2 * 34, data.scales + 5, 2);
    assert_memory_equal(blocks + 2 * 34 + 2, data.w + WIDTH + 64, 6);
    assert_memory_equal(blocks + 2 * 34 + 8, zeros, sizeof zeros);
    safetensors_close(file);
}

/* Half bytes in groups, the last one of three cut off: from every element on, by both forms of scales; as blocks of GGUF files, too. */
static void reads_half_bytes_in_groups(void **state)
{
    (void)state;
    enum { WIDTH = 70, GROUPS = 3, COUNT = 2 * WIDTH };
    static const char header[] = "{\"w\": {\"dtype\": \"U8\", \"shape\": [2, 35], \"data_offsets\": [0, 70]},"
                                 " \"w_groups_%s\": {\"dtype\": \"F16\", \"shape\": [2, 3%s], \"data_offsets\": [70, %d]}}";
    for (int minimum = 0; minimum < 2; ++minimum) {
        struct {
            unsigned char w[COUNT / 2];
            unsigned short scales[2 * GROUPS * 2];
        } data;
        char text[400], error[400] = "";
        double expected[COUNT], out[COUNT];
        const size_t numbers = minimum ? 2 : 1;
        for (size_t i = 0; i < sizeof data.w; ++i)
            data.w[i] = (unsigned char)(37 * i + 11);
        for (size_t i = 0; i < 2 * GROUPS * numbers; ++i) /* 1, 2, 4 … and, where there are minima, each second one: 0.5 … */
            data.scales[i] = (unsigned short)((minimum && i % 2 ? 14 : 15) + i / numbers) << 10;
        for (size_t i = 0; i < COUNT; ++i) {
            const int half = data.w[i / 2] >> i % 2 * 4 & 15, group = (int)(i / WIDTH * GROUPS + i % WIDTH / 32);
            const double scale = (double)(1 << group);
            expected[i] = minimum ? half * scale + scale / 2 : (half < 8 ? half : half - 16) * scale;
        }
        snprintf(text, sizeof text, header, minimum ? "u4" : "i4", minimum ? ", 2" : "", minimum ? 94 : 82);
        write_tensors(text, &data, minimum ? 94 : 82);
        safetensors *file = open_good();
        const safetensors_tensor *tensor = safetensors_find(file, "w");
        assert_true(tensor->rank == 2 && tensor->shape[1] == WIDTH && tensor->count == COUNT && tensor->dtype == DTYPE_F32);
        assert_string_equal(safetensors_blocks_name(tensor), minimum ? "Q4_1" : "Q4_0");
        assert_true(safetensors_count(file) == 1);
        for (size_t first = 0; first < COUNT; ++first)
            for (size_t count = 0; count <= COUNT - first; ++count) {
                assert_true(safetensors_read(file, tensor, first, count, out, error, sizeof error));
                assert_memory_equal(out, expected + first, count * sizeof *out);
            }
        unsigned char blocks[GROUPS * 20];
        assert_true(safetensors_read_blocks(file, tensor, WIDTH, WIDTH, blocks, error, sizeof error));
        const unsigned char *const last = blocks + 2 * (minimum ? 20 : 18); /* of its 32 integers there are 6 */
        assert_memory_equal(last, data.scales + 5 * numbers, 2 * numbers);
        for (size_t i = 0; i < 16; ++i) {
            const unsigned there = i < 6 ? (unsigned)(data.w[(WIDTH + 64 + i) / 2] >> i % 2 * 4 & 15) : 0;
            assert_true(last[2 * numbers + i] == ((i < 6 ? there : 0) ^ (minimum ? 0u : 8u)) + (minimum ? 0u : 0x80u));
        }
        safetensors_close(file);
    }
    write_tensors("{\"w\": {\"dtype\": \"U8\", \"shape\": [2, 32], \"data_offsets\": [6, 70]},"
                  " \"w_groups_i4\": {\"dtype\": \"F16\", \"shape\": [3], \"data_offsets\": [0, 6]}}",
                  NULL, 70);
    expect_refused("tensor w_groups_i4: 3 elements: must be 4, for each group of 32 values of w");
    static const struct {
        const char *dtype, *scales, *found, *message;
    } wrong[] = {
        {"U8", "groups_i4", "BF16", "tensor w_groups_i4: dtype: BF16: must be F16, the scales of w"},
        {"U8", "scale_i4", "F16", "tensor w_scale_i4: dtype: F16: must be F32, the scales of w"},
        {"I8", "groups_q8", "BF16", "tensor w_groups_q8: dtype: BF16: must be F16, the scales of w"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"w\": {\"dtype\": \"%s\", \"shape\": [2, 32], \"data_offsets\": [4, 68]},"
                 " \"w_%s\": {\"dtype\": \"%s\", \"shape\": [2], \"data_offsets\": [0, 4]}}",
                 wrong[i].dtype, wrong[i].scales, wrong[i].found);
        write_tensors(text, NULL, 68);
        expect_refused(wrong[i].message);
    }
}

/* More rows than scales are read at a time. */
static void reads_many_rows_of_integers(void **state)
{
    (void)state;
    enum { ROWS = 1000 };
    static float scales[ROWS];
    static signed char integers[ROWS][2];
    static double out[2 * ROWS];
    for (int i = 0; i < ROWS; ++i) {
        scales[i] = (float)(i + 1);
        integers[i][0] = (signed char)(i % 255 - 127);
        integers[i][1] = 1;
    }
    static const safetensors_description tensors[] = {{"w", 2, {ROWS, 2}, DTYPE_I8}, {"w_scale", 1, {ROWS}, DTYPE_F32}};
    char error[400] = "";
    safetensors_writer *writer = safetensors_create(scratch_path, tensors, 2, error, sizeof error);
    assert_non_null(writer);
    assert_true(safetensors_append(writer, integers, sizeof integers, error, sizeof error));
    assert_true(safetensors_append(writer, scales, sizeof scales, error, sizeof error));
    assert_true(safetensors_finish(writer, error, sizeof error));
    safetensors *file = open_good();
    assert_true(safetensors_read(file, safetensors_find(file, "w"), 1, 2 * ROWS - 1, out, error, sizeof error));
    for (int i = 1; i < 2 * ROWS; ++i) {
        assert_true(out[i - 1] == (double)integers[i / 2][i % 2] * (i / 2 + 1));
    }
    safetensors_close(file);
}

/* The value of an fp8 number by its definition. */
static float fp8_value(unsigned byte)
{
    const int exponent = (int)(byte >> 3 & 15), fraction = (int)(byte & 7);
    float value = exponent == 0 ? (float)fraction / 8.0f : 1.0f + (float)fraction / 8.0f;
    for (int e = exponent == 0 ? 1 : exponent; e < 7; ++e)
        value /= 2.0f;
    for (int e = exponent; e > 7; --e)
        value *= 2.0f;
    return byte < 128 ? value : -value;
}

/* fp8 times the scales of blocks, the last of which are cut off, in F32 and BF16. */
static void reads_fp8_with_scales_of_blocks(void **state)
{
    (void)state;
    enum { ROWS = 130, COLUMNS = 300, ALL = ROWS * COLUMNS };
    static struct {
        float scales[2][3];
        unsigned short halves[2][3];
        unsigned char w[ALL], v[ALL];
    } data;
    static double out[ALL];
    char header[400], error[400] = "";
    for (int i = 0; i < ALL; ++i) {
        const int byte = i * 7 % 256;
        data.w[i] = data.v[i] = (unsigned char)((byte & 127) == 127 ? 0 : byte);
    }
    for (int i = 0; i < 6; ++i) {
        data.scales[i / 3][i % 3] = 0.1f * (float)(i + 1);
        data.halves[i / 3][i % 3] = (unsigned short)(0x3f80 + i); /* 1 + i / 128 */
    }
    snprintf(header, sizeof header,
             "{\"w_scale_inv\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"data_offsets\": [0, 24]},"
             " \"v_scale_inv\": {\"dtype\": \"BF16\", \"shape\": [2, 3], \"data_offsets\": [24, 36]},"
             " \"w\": {\"dtype\": \"F8_E4M3\", \"shape\": [%d, %d], \"data_offsets\": [36, %d]},"
             " \"v\": {\"dtype\": \"F8_E4M3\", \"shape\": [%d, %d], \"data_offsets\": [%d, %d]}}",
             ROWS, COLUMNS, 36 + ALL, ROWS, COLUMNS, 36 + ALL, 36 + 2 * ALL);
    write_tensors(header, &data, 36 + 2 * ALL);
    safetensors *file = open_good();
    assert_int_equal(safetensors_count(file), 2);
    assert_null(safetensors_find(file, "w_scale_inv"));
    assert_true(safetensors_has_scales(file, "w_scale_inv") && safetensors_has_scales(file, "v_scale_inv"));
    assert_false(safetensors_has_scales(file, "w"));
    for (int which = 0; which < 2; ++which) {
        const safetensors_tensor *tensor = safetensors_find(file, which ? "v" : "w");
        assert_int_equal(tensor->dtype, DTYPE_F32);
        for (size_t first = 0; first < ALL; first += 12345) {
            const size_t count = first == 0 ? ALL : (ALL - first) / 2;
            assert_true(safetensors_read(file, tensor, first, count, out, error, sizeof error));
            for (size_t i = 0; i < count; ++i) {
                const size_t row = (first + i) / COLUMNS / 128, column = (first + i) % COLUMNS / 128;
                const float scale = which ? 1.0f + (float)(3 * row + column) / 128.0f : data.scales[row][column];
                const float product = fp8_value(data.w[first + i]) * scale;
                assert_true(out[i] == (double)product);
            }
        }
    }
    safetensors_close(file);

    data.w[5] = 255;
    write_tensors(header, &data, 36 + 2 * ALL);
    file = open_good();
    assert_false(safetensors_read(file, safetensors_find(file, "w"), 4, 3, out, error, sizeof error));
    assert_refused(error, "tensor w: element 5: NaN: must be finite");
    safetensors_close(file);

    write_tensors("{\"w\": {\"dtype\": \"F8_E4M3\", \"shape\": [2, 130], \"data_offsets\": [8, 268]},"
                  " \"w_scale_inv\": {\"dtype\": \"F32\", \"shape\": [2, 1], \"data_offsets\": [0, 8]}}",
                  NULL, 268);
    expect_refused("tensor w_scale_inv: shape [2][1]: must be [1][2], one for each 128 x 128 values of w");
    write_tensors("{\"w\": {\"dtype\": \"F8_E4M3\", \"shape\": [2, 4], \"data_offsets\": [0, 8]}}", NULL, 8);
    file = open_good();
    assert_false(safetensors_read(file, safetensors_find(file, "w"), 0, 8, out, error, sizeof error));
    assert_refused(error, "tensor w: dtype: F8_E4M3, which is FP8: must be F32, F16, BF16 or F64, or stand beside its blocks' scales, "
                          "NAME_scale_inv in F32 or BF16, in one file; take the checkpoint that it was made from");
    safetensors_close(file);
}

static void suggests_the_nearest_name(void **state)
{
    (void)state;
    static const char *const missing_nearest[][2] = {
        {"bias", "r.0.FFN.bias"},
        {"x.scale", "scale"},
        {"r.1.FFN.tables", "r.0.FFN.tables"},
        {"r.0.FFN.tabels", "r.0.FFN.tables"},
        {"r.0.FFN.hash.projection.weights", "r.0.FFN.hash.projection.weight"},
        {"r.0.FFN.hash.projection.bias", NULL},
        {"sale", "scale"},
        {"a", NULL},
        {"", NULL},
        /* by parts: one name leaves some of the other's out, the last ones are the same */
        {"e.layer.0.attention.self.query.weight", "e.layer.0.attention.query.weight"},
        {"e.layer.0.query.weight", "e.layer.0.attention.query.weight"},
        {"m.e.layer.0.attention.self.query.weight", "e.layer.0.attention.query.weight"},
        {"e.layer.0.attention.self.key.weight", NULL},
        {"e.layer.0.attention.key.weight", NULL}, /* three letters, but most of a part */
        {"e.layer.0.attention.self.query.extra", NULL},
        {"e.layer.0.a.b.c.attention.query.weight", NULL},
        {"query.weight", "e.layer.0.attention.query.weight"},
        {"e.weight", NULL},
        {"e.layer.0.attention.guery.weight", NULL}, /* begins with another letter */
    };
    static const char *const names[] = {"r.0.FFN.bias", "r.0.FFN.tables", "r.0.FFN.hash.projection.weight", "scale",
                                        "e.layer.0.attention.query.weight"};
    char header[1000] = "{";
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        const size_t used = strlen(header);
        snprintf(header + used, sizeof header - used, "%s\"%s\": {\"dtype\": \"F32\", \"shape\": [0], \"data_offsets\": [0, 0]}",
                 i > 0 ? ", " : "", names[i]);
    }
    strcat(header, "}");
    write_tensors(header, NULL, 0);
    safetensors *file = open_good();
    for (size_t i = 0; i < sizeof missing_nearest / sizeof *missing_nearest; ++i) {
        nearest search = {.wanted = missing_nearest[i][0]};
        safetensors_offer(file, &search);
        assert_string_equal(search.name == NULL ? "none" : search.name, missing_nearest[i][1] == NULL ? "none" : missing_nearest[i][1]);
    }
    safetensors_close(file);
}

/* ---- values ---- */

/* What a 16-bit float with that many fraction bits means, from the definition; NaN or infinite for the largest exponent. */
static double value_of_16_bits(unsigned bits, int fraction_bits)
{
    const int exponent_bits = 15 - fraction_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (int)(bits >> fraction_bits & ((1u << exponent_bits) - 1));
    const double fraction = ldexp((double)(bits & ((1u << fraction_bits) - 1)), -fraction_bits);
    double magnitude = exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
    if (exponent == (1 << exponent_bits) - 1) {
        magnitude = fraction > 0 ? (double)NAN : (double)INFINITY;
    }
    return bits >> 15 != 0 ? -magnitude : magnitude;
}

/* Every value of F16 or BF16. */
static void check_all_16_bits(const char *header, int fraction_bits)
{
    static uint16_t all[65536];
    for (unsigned i = 0; i < 65536; ++i) {
        all[i] = (uint16_t)i;
    }
    write_tensors(header, all, sizeof all);
    safetensors *file = open_good();
    const safetensors_tensor *tensor = safetensors_at(file, 0);
    for (unsigned i = 0; i < 65536; ++i) {
        char error[400] = "";
        double value = 7;
        const double expected = value_of_16_bits(i, fraction_bits);
        const bool ok = safetensors_read(file, tensor, i, 1, &value, error, sizeof error);
        assert_int_equal(ok, isfinite(expected) != 0);
        if (ok) {
            assert_memory_equal(&value, &expected, sizeof value); /* the sign of zero too */
        } else {
            char rule[100];
            const char *infinity = expected > 0 ? "inf" : "-inf";
            snprintf(rule, sizeof rule, "tensor a: element %u: %s: must be finite", i, isnan(expected) ? "NaN" : infinity);
            assert_refused(error, rule);
        }
    }
    safetensors_close(file);
}

static void converts_f16_and_bf16_exactly(void **state)
{
    (void)state;
    check_all_16_bits("{\"a\": {\"dtype\": \"F16\", \"shape\": [65536], \"data_offsets\": [0, 131072]}}", 10);
    check_all_16_bits("{\"a\": {\"dtype\": \"BF16\", \"shape\": [65536], \"data_offsets\": [0, 131072]}}", 7);
}

/* The header has an odd length: the values stand at odd addresses. */
static void converts_f32_and_f64_exactly(void **state)
{
    (void)state;
    static const struct {
        double wide[4];
        float narrow[6];
    } data = {{1.0 / 3, -1e-310, 1.7976931348623157e308, -0.0}, {1e-45f, -3.4028234e38f, 0.1f, INFINITY, NAN, -INFINITY}};
    const char header[] = "{\"wide\":{\"dtype\":\"F64\",\"shape\":[4],\"data_offsets\":[0,32]},"
                          "\"narrow\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[32,56]}} ";
    assert_int_equal(strlen(header) % 2, 1);
    write_tensors(header, &data, 56);
    safetensors *file = open_good();
    char error[400] = "";
    double out[6];
    const safetensors_tensor *wide = safetensors_find(file, "wide");
    assert_true(safetensors_read(file, wide, 0, 4, out, error, sizeof error));
    assert_memory_equal(out, data.wide, sizeof data.wide);

    const safetensors_tensor *narrow = safetensors_find(file, "narrow");
    assert_true(safetensors_read(file, narrow, 0, 3, out, error, sizeof error));
    for (int i = 0; i < 3; ++i) {
        assert_true(out[i] == (double)data.narrow[i]);
    }
    assert_false(safetensors_read(file, narrow, 1, 5, out, error, sizeof error));
    assert_refused(error, "tensor narrow: element 3: inf: must be finite");
    assert_false(safetensors_read(file, narrow, 4, 1, out, error, sizeof error));
    assert_refused(error, "tensor narrow: element 4: NaN: must be finite");
    assert_false(safetensors_read(file, narrow, 5, 1, out, error, sizeof error));
    assert_refused(error, "tensor narrow: element 5: -inf: must be finite");
    safetensors_close(file);
}

/* Opens scratch_path and reads all of it; what fails must fail in one line. Returns whether it opened. */
static bool exercise(void)
{
    char error[400] = "";
    safetensors *file = safetensors_open(scratch_path, error, sizeof error);
    if (file == NULL) {
        assert_one_line(error);
        return false;
    }
    for (size_t i = 0; i < safetensors_count(file); ++i) {
        const safetensors_tensor *tensor = safetensors_at(file, i);
        double out[64];
        assert_ptr_equal(safetensors_find(file, tensor->name), tensor);
        assert_true(tensor->count <= 64);
        if (!safetensors_read(file, tensor, 0, tensor->count, out, error, sizeof error)) {
            assert_one_line(error);
        }
    }
    nearest search = {.wanted = "layer.1.bias"};
    safetensors_offer(file, &search);
    safetensors_close(file);
    return true;
}

/* Any damage is either harmless or refused in one line. */
static void survives_cuts_and_flipped_bits(void **state)
{
    (void)state;
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"layer.0.bias\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]},"
                                 "\"tables\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[4,20]},"
                                 "\"ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[20,28]}} ";
    write_tensors(header, NULL, 28);
    assert_true(exercise());
    size_t size;
    unsigned char *good = scratch_read(&size);
    for (size_t cut = 0; cut < size; ++cut) {
        scratch_write(good, cut);
        assert_false(exercise());
    }
    scratch_write(good, size + 1);
    assert_false(exercise());
    for (size_t bit = 0; bit < 8 * size; ++bit) {
        good[bit / 8] ^= (unsigned char)(1u << bit % 8);
        scratch_write(good, size);
        exercise();
        good[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(good);
}

/* ---- writing ---- */

static const safetensors_description two_tensors[2] = {{"b", 2, {2, 3}, DTYPE_F32}, {"a \"\xc3\xa4\"", 0, {0}, DTYPE_F32}};

/* Writes 7 values as two_tensors, in two calls. */
static void write_two(const float *values)
{
    char error[400] = "";
    safetensors_writer *writer = safetensors_create(scratch_path, two_tensors, 2, error, sizeof error);
    assert_non_null(writer);
    assert_true(safetensors_append(writer, values, 2 * sizeof *values, error, sizeof error));
    assert_true(safetensors_append(writer, values + 2, 5 * sizeof *values, error, sizeof error));
    assert_true(safetensors_finish(writer, error, sizeof error));
    assert_string_equal(error, "");
}

static void writes_what_it_reads(void **state)
{
    (void)state;
    static const float values[7] = {1, 2, 3, 4, 5, 6, -0.1f};
    static const char header[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                                 "\"a \\\"\xc3\xa4\\\"\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[24,28]}}  ";
    write_two(values);
    size_t size;
    unsigned char *bytes = scratch_read(&size);
    assert_int_equal(bytes[0], sizeof header - 1);
    assert_int_equal(bytes[0] % 8, 0);
    assert_memory_equal(bytes + 1, "\0\0\0\0\0\0\0", 7);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    assert_int_equal(size, 8 + sizeof header - 1 + sizeof values);
    assert_memory_equal(bytes + size - sizeof values, values, sizeof values);
    free(bytes);

    safetensors *file = open_good();
    char error[400] = "";
    double out[6];
    assert_true(safetensors_read(file, safetensors_find(file, two_tensors[1].name), 0, 1, out, error, sizeof error));
    assert_true(out[0] == (double)-0.1f);
    assert_true(safetensors_read(file, safetensors_find(file, "b"), 0, 6, out, error, sizeof error));
    for (int i = 0; i < 6; ++i) {
        assert_true(out[i] == (double)values[i]);
    }
    safetensors_close(file);
    assert_int_equal(scratch_count(), 1);
}

/* Something else than safetensors is called by its name, and PyTorch's checkpoints come with the Python that converts them. */
static void names_other_formats(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *is;
    } cases[] = {
        {"PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0", 16, "a ZIP file, as PyTorch checkpoints are; convert it with Python: import torch; "},
        {"\x80\2\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", 15, "a PyTorch checkpoint; convert it with Python: import torch; "},
        {"\x80\4\x95\0\0\0\0\0\0\0\0}\x94.", 14, "a pickle, perhaps a PyTorch checkpoint; convert it with Python: import torch; "},
        {"PK\3\4", 4, "a ZIP file, as PyTorch checkpoints are; "},
        {"\x89HDF\r\n\x1a\n\0\0\0\0", 12, "an HDF5 file"},
        {"\x93NUMPY\1\0v\0{'descr'", 18, "a NumPy array"},
        {"LOOKUPC\0\1\0\0\0", 12, "a blob of lookupc pack: "},
        {"version https://git-lfs.github.com/spec/v1\n", 43, "the pointer of Git LFS to a file: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char error[1000] = "", expected[300];
        scratch_write(cases[i].bytes, cases[i].size);
        assert_null(safetensors_open(scratch_path, error, sizeof error));
        assert_one_line(error);
        snprintf(expected, sizeof expected, "%s: is not a safetensors file but %s", scratch_path, cases[i].is);
        assert_memory_equal(error, expected, strlen(expected));
    }
}

/* A file that becomes shorter while it is open is an error like any other. */
static void refuses_what_was_cut_off_meanwhile(void **state)
{
    (void)state;
    static const float values[4096] = {1.0f};
    char error[400] = "";
    double *out = malloc(sizeof values / sizeof *values * sizeof *out);
    assert_non_null(out);
    write_tensors("{\"a\": {\"dtype\": \"F32\", \"shape\": [4096], \"data_offsets\": [0, 16384]}}", values, sizeof values);
    safetensors *file = open_good();
    const safetensors_tensor *tensor = safetensors_find(file, "a");
    assert_true(safetensors_read(file, tensor, 0, 4096, out, error, sizeof error));
    assert_int_equal(truncate(scratch_path, 4096), 0);
    assert_true(safetensors_read(file, tensor, 0, 1000, out, error, sizeof error));
    assert_true(out[0] == 1.0 && out[999] == 0.0);
    assert_false(safetensors_read(file, tensor, 1000, 3096, out, error, sizeof error));
    char expected[200];
    snprintf(expected, sizeof expected, "was cut off while it was read: it ends before byte %zu", tensor->at + 16384);
    assert_refused(error, expected);
    assert_false(safetensors_read_bytes(file, tensor, 4000, 1, out, error, sizeof error));
    assert_one_line(error);
    assert_null(safetensors_load(file, tensor, error, sizeof error));
    safetensors_close(file);
    free(out);
}

/* Tensors of several dtypes in one file. */
static void writes_every_readable_dtype(void **state)
{
    (void)state;
    static const safetensors_description tensors[] = {
        {"bf16", 1, {2}, DTYPE_BF16}, {"f64", 1, {1}, DTYPE_F64}, {"f16", 1, {1}, DTYPE_F16}, {"f32", 1, {1}, DTYPE_F32}};
    static const uint16_t bf16[2] = {0x3f80, 0xc040}, f16 = 0x3800;
    static const double f64 = 1e-300;
    static const float f32 = 7.0f;
    static const double expected[] = {-3.0, 1e-300, 0.5, 7.0};
    char error[400] = "";
    safetensors_writer *writer = safetensors_create(scratch_path, tensors, 4, error, sizeof error);
    assert_non_null(writer);
    assert_true(safetensors_append(writer, bf16, sizeof bf16, error, sizeof error));
    assert_true(safetensors_append(writer, &f64, sizeof f64, error, sizeof error));
    assert_true(safetensors_append(writer, &f16, sizeof f16, error, sizeof error));
    assert_true(safetensors_append(writer, &f32, sizeof f32, error, sizeof error));
    assert_true(safetensors_finish(writer, error, sizeof error));
    safetensors *file = open_good();
    for (size_t i = 0; i < 4; ++i) {
        const safetensors_tensor *tensor = safetensors_find(file, tensors[i].name);
        assert_int_equal(tensor->dtype, tensors[i].dtype);
        assert_int_equal(safetensors_dtype_named(tensor->dtype_name), tensors[i].dtype);
        double value;
        assert_true(safetensors_read(file, tensor, tensor->count - 1, 1, &value, error, sizeof error));
        assert_true(value == expected[i]);
    }
    safetensors_close(file);
}

static void refuses_bad_descriptions(void **state)
{
    (void)state;
    static const struct {
        safetensors_description tensors[2];
        const char *rule;
    } cases[] = {
        {{{"a", 1, {1}, DTYPE_F32}, {"a", 1, {1}, DTYPE_F32}}, "tensor a: the name is taken"},
        {{{"a", 1, {1}, DTYPE_F32}, {"__metadata__", 1, {1}, DTYPE_F32}}, "tensor __metadata__: the name is taken"},
        {{{"a", 1, {1}, DTYPE_F32}, {"b\xff", 1, {1}, DTYPE_F32}}, "tensor b\xff: the name must be UTF-8"},
        {{{"a", 9, {1}, DTYPE_F32}, {"b", 1, {1}, DTYPE_F32}}, "tensor a: shape: 9 dimensions: must be from 0 to 8"},
        {{{"a", -1, {1}, DTYPE_F32}, {"b", 1, {1}, DTYPE_F32}}, "tensor a: shape: -1 dimensions: must be from 0 to 8"},
        {{{"a", 1, {-1}, DTYPE_F32}, {"b", 1, {1}, DTYPE_F32}}, "tensor a: shape: negative or too large"},
        {{{"a", 2, {INT64_MAX, 2}, DTYPE_F32}, {"b", 1, {1}, DTYPE_F32}}, "tensor a: shape: negative or too large"},
        {{{"a", 1, {INT64_MAX / 4}, DTYPE_F32}, {"b", 1, {1}, DTYPE_F32}}, "tensor b: shape: negative or too large"},
    };
    unlink(scratch_path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char error[400] = "";
        assert_null(safetensors_create(scratch_path, cases[i].tensors, 2, error, sizeof error));
        assert_refused(error, cases[i].rule);
    }
    assert_int_equal(scratch_count(), 0);
}

static void writes_all_or_nothing(void **state)
{
    (void)state;
    static const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    char error[400] = "";
    write_two(values);
    size_t size;
    unsigned char *before = scratch_read(&size);

    /* too many, too few, given up */
    safetensors_writer *writer = safetensors_create(scratch_path, two_tensors, 2, error, sizeof error);
    assert_int_equal(scratch_count(), 2);
    assert_false(safetensors_append(writer, values, 8 * sizeof *values, error, sizeof error));
    assert_refused(error, "4 bytes more than its tensors hold");
    safetensors_abandon(writer);
    writer = safetensors_create(scratch_path, two_tensors, 2, error, sizeof error);
    assert_true(safetensors_append(writer, values, 6 * sizeof *values, error, sizeof error));
    assert_false(safetensors_finish(writer, error, sizeof error));
    assert_refused(error, "4 bytes of its tensors were never written");
    safetensors_abandon(safetensors_create(scratch_path, two_tensors, 2, error, sizeof error));
    safetensors_abandon(NULL);

    /* a full disk, met in safetensors_append and in safetensors_finish */
    float *large = calloc(100000, sizeof *large);
    assert_non_null(large);
    static const int64_t sizes[2] = {100000, 2100};
    for (int i = 0; i < 2; ++i) {
        const safetensors_description description = {"a", 1, {sizes[i]}, DTYPE_F32};
        limit_file_size(true);
        writer = safetensors_create(scratch_path, &description, 1, error, sizeof error);
        bool appended = writer != NULL;
        for (int64_t j = 0; j < sizes[i] && appended; j += 100) {
            appended = safetensors_append(writer, large + j, 100 * sizeof *large, error, sizeof error);
        }
        bool finished = false;
        if (appended) {
            finished = safetensors_finish(writer, error, sizeof error);
        } else {
            safetensors_abandon(writer);
        }
        limit_file_size(false);
        assert_non_null(writer);
        assert_int_equal(appended, i == 1);
        assert_false(finished);
        assert_refused(error, "File too large");
    }
    free(large);

    lock_folder(true);
    writer = safetensors_create(scratch_path, two_tensors, 2, error, sizeof error);
    lock_folder(false);
    assert_null(writer);
    assert_refused(error, "Permission denied");

    size_t size_after;
    unsigned char *after = scratch_read(&size_after);
    assert_int_equal(size_after, size);
    assert_memory_equal(after, before, size);
    free(before);
    free(after);
    assert_int_equal(scratch_count(), 1);

    assert_null(safetensors_create("/no/such/folder/w.safetensors", two_tensors, 2, error, sizeof error));
    assert_string_equal(error, "/no/such/folder/w.safetensors: No such file or directory");
    assert_null(safetensors_create(scratch_folder, two_tensors, 2, error, sizeof error));
    assert_non_null(strstr(error, ": is not a regular file"));
}

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
    interrupted = number;
}

static void lets_interrupts_wait(void **state)
{
    (void)state;
    char error[400] = "";
    signal(SIGINT, note_interrupt);
    safetensors_writer *writer = safetensors_create(scratch_path, two_tensors, 2, error, sizeof error);
    raise(SIGINT);
    assert_int_equal(interrupted, 0);
    safetensors_abandon(writer);
    assert_int_equal(interrupted, SIGINT);
    signal(SIGINT, SIG_DFL);
}

static void follows_links_and_keeps_modes(void **state)
{
    (void)state;
    static const float values[7] = {1, 2, 3, 4, 5, 6, 7};
    char link[sizeof scratch_folder + 10];
    snprintf(link, sizeof link, "%s/link", scratch_folder);
    unlink(scratch_path);
    umask(027);
    write_two(values);
    struct stat status;
    assert_int_equal(stat(scratch_path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);

    assert_int_equal(chmod(scratch_path, 0604), 0);
    assert_int_equal(symlink("f", link), 0);
    char error[400] = "";
    safetensors_writer *writer = safetensors_create(link, NULL, 0, error, sizeof error);
    assert_non_null(writer);
    assert_true(safetensors_finish(writer, error, sizeof error));
    assert_int_equal(lstat(scratch_path, &status), 0);
    assert_int_equal(status.st_size, 16);
    assert_int_equal(status.st_mode & 0777, 0604);
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    unlink(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_lengths),
        cmocka_unit_test(refuses_bad_headers),
        cmocka_unit_test(refuses_extreme_headers),
        cmocka_unit_test(finds_tensors),
        cmocka_unit_test(knows_every_dtype_and_its_width),
        cmocka_unit_test(reads_integers_with_scales),
        cmocka_unit_test(reads_half_bytes_with_scales),
        cmocka_unit_test(reads_bytes_in_groups),
        cmocka_unit_test(reads_half_bytes_in_groups),
        cmocka_unit_test(reads_fp8_with_scales_of_blocks),
        cmocka_unit_test(reads_many_rows_of_integers),
        cmocka_unit_test(suggests_the_nearest_name),
        cmocka_unit_test(converts_f16_and_bf16_exactly),
        cmocka_unit_test(converts_f32_and_f64_exactly),
        cmocka_unit_test(survives_cuts_and_flipped_bits),
        cmocka_unit_test(names_other_formats),
        cmocka_unit_test(refuses_what_was_cut_off_meanwhile),
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(writes_every_readable_dtype),
        cmocka_unit_test(refuses_bad_descriptions),
        cmocka_unit_test(writes_all_or_nothing),
        cmocka_unit_test(lets_interrupts_wait),
        cmocka_unit_test(follows_links_and_keeps_modes),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
