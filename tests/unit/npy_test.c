/* The .npy reader takes what NumPy writes and refuses everything else in one line; the writer leaves a whole file or none. */
#include "tests/support/scratch.h"

#include "gen/weights/npy.h"

#include <math.h>

#define START "\x93NUMPY\x01\x00"
#define HEADER_2x3 "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"

static const float six[6] = {1.5f, -2.0f, 0.0f, 3.25f, -0.5f, 1e-30f};

/* Makes scratch_path a file of version 1.0 (or 2.0) with that header and data[bytes]. */
static void write_npy(int major, const char *header, const void *data, size_t bytes)
{
    unsigned char file[4096] = START;
    const size_t length = strlen(header);
    const size_t start = major == 1 ? 10 : 12;
    assert_true(start + length + bytes <= sizeof file);
    file[6] = (unsigned char)major;
    file[8] = (unsigned char)(length & 255);
    file[9] = (unsigned char)(length >> 8);
    memcpy(file + start, header, length);
    if (bytes > 0) {
        memcpy(file + start + length, data, bytes);
    }
    scratch_write(file, start + length + bytes);
}

static void expect_refused(const char *rule)
{
    char error[300] = "";
    size_t rows = 7;
    size_t columns = 7;
    assert_null(npy_read_f32(scratch_path, &rows, &columns, error, sizeof error));
    assert_refused(error, rule);
}

static void expect_six(void)
{
    char error[300] = "";
    size_t rows = 0;
    size_t columns = 0;
    float *values = npy_read_f32(scratch_path, &rows, &columns, error, sizeof error);
    assert_string_equal(error, "");
    assert_non_null(values);
    assert_int_equal(rows, 2);
    assert_int_equal(columns, 3);
    assert_memory_equal(values, six, sizeof six);
    free(values);
}

static void reads_every_spelling_of_a_header(void **state)
{
    (void)state;
    static const char *const headers[] = {
        HEADER_2x3,
        HEADER_2x3 "                                                          \n",
        "{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
        "{'shape': (2, 3,), 'fortran_order': False, 'descr': '<f4'}\n",
        " {\"shape\" :\t( 2 , 3 ) ,\n'descr': \"<f4\",'fortran_order' : False , } \n",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; ++i) {
        for (int major = 1; major <= 2; ++major) {
            write_npy(major, headers[i], six, sizeof six);
            expect_six();
        }
    }
}

static void passes_non_finite_values_and_zero_rows(void **state)
{
    (void)state;
    char error[300] = "";
    size_t rows = 7;
    size_t columns = 0;
    const float odd[6] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-45f, 1.0f};
    write_npy(1, HEADER_2x3, odd, sizeof odd);
    float *values = npy_read_f32(scratch_path, &rows, &columns, error, sizeof error);
    assert_non_null(values);
    assert_memory_equal(values, odd, sizeof odd);
    free(values);

    write_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 64), }", NULL, 0);
    values = npy_read_f32(scratch_path, &rows, &columns, error, sizeof error);
    assert_non_null(values);
    assert_int_equal(rows, 0);
    assert_int_equal(columns, 64);
    free(values);
}

static void converts_float64(void **state)
{
    (void)state;
    static const char wide[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    double values[6];
    for (size_t i = 0; i < 6; ++i)
        values[i] = (double)six[i];
    write_npy(1, wide, values, sizeof values);
    expect_six();
    values[0] = (double)INFINITY;
    write_npy(1, wide, values, sizeof values);
    size_t rows;
    bool converted = false;
    char error[300] = "";
    assert_true(npy_check_tokens(scratch_path, 3, &rows, &converted, error, sizeof error));
    assert_true(converted);
    values[4] = 1e39;
    write_npy(1, wide, values, sizeof values);
    expect_refused("value 4: 1e+39: is too large for float32");
    write_npy(1, wide, six, sizeof six);
    expect_refused("data: 24 bytes: must be 48 for shape (2, 3)");
}

static void refuses_what_is_no_npy(void **state)
{
    (void)state;
    unlink(scratch_path);
    expect_refused("No such file or directory");
    scratch_write("", 0);
    expect_refused("not an .npy file");
    scratch_write("PK\x03\x04", 4);
    expect_refused("not an .npy file");
    scratch_write("\x93NUMPY\x01", 7);
    expect_refused("not an .npy file");
    scratch_write("\x93NUMPY\x03\x00\x02\x00{}", 12);
    expect_refused("version: 3.0: must be 1.0 or 2.0");
    scratch_write("\x93NUMPY\x01\x01\x02\x00{}", 12);
    expect_refused("version: 1.1: must be 1.0 or 2.0");
    scratch_write("\x93NUMPY\x02\x00\x02\x00\x00", 11);
    expect_refused("header: cut off");
    scratch_write(START "\x03\x00{}", 12);
    expect_refused("header: length 3: the file has only 2 bytes after it");
    scratch_write("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14);
    expect_refused("header: length 4294967295: the file has only 2 bytes after it");

    char error[300] = "";
    size_t rows;
    size_t columns;
    assert_null(npy_read_f32("/", &rows, &columns, error, sizeof error));
    assert_string_equal(error, "/: is not a regular file");
}

static void refuses_bad_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        const char *rule;
    } cases[] = {
        {"", "header: byte 0: expected '{'"},
        {"(2, 3)", "header: byte 0: expected '{'"},
        {"{", "header: byte 1: expected a string"},
        {"{'descr", "header: byte 1: expected a string of at most 31 characters"},
        {"{'a name that is longer than any key of the format': 1}", "header: byte 1: expected a string of at most 31 characters"},
        {"{'descr' '<f4'}", "header: byte 9: expected ':'"},
        {"{'descr': ", "header: byte 10: expected a string"},
        {"{'descr': [('a', '<f4')]}", "header: byte 10: expected a string"},
        {"{'descr': '<f4' 'shape': (2, 3)}", "header: byte 16: expected ',' or '}'"},
        {"{'descr': '<f4', , }", "header: byte 17: expected a string"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}",
         "descr: '>f4': must be '<f4' or '<f8' (float32 or float64, little-endian)"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3)}",
         "descr: '<f2': must be '<f4' or '<f8' (float32 or float64, little-endian)"},
        {"{'descr': '<f\n', 'fortran_order': False, 'shape': (2, 3)}",
         "descr: '<f?': must be '<f4' or '<f8' (float32 or float64, little-endian)"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", "fortran_order: True: must be False"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}", "header: byte 34: expected True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 6}", "header: byte 50: expected a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", "header: byte 53: expected ',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}", "header: byte 54: expected a dimension, an integer not below 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3.0)}", "header: byte 55: expected ',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "header: byte 53: expected a dimension, an integer not below 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "shape: 0 dimensions: must be 2, (rows, columns)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "shape: 1 dimension: must be 2, (rows, columns)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3)}", "shape: 3 dimensions: must be 2, (rows, columns)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}", "shape: (2, 0): must have at least one column"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616, 1)}", "shape: dimension 0 is too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 99999999999999999999)}", "shape: dimension 1 is too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "shape: (4294967296, 4294967296): too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 1)}", "shape: (4611686018427387904, 1): too large"},
        {"{'descr': '<f4', 'fortran_order': False}", "header: shape: missing"},
        {"{'fortran_order': False, 'shape': (2, 3)}", "header: descr: missing"},
        {"{}", "header: descr: missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "header: descr: given twice"},
        {"{'descr': '<f4', 'color': 1}", "header: color: unknown key"},
        {HEADER_2x3 " x", "header: byte 60: expected nothing after '}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}", "data: 24 bytes: must be 32 for shape (2, 4)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)}", "data: 24 bytes: must be 12 for shape (1, 3)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}", "data: 24 bytes: must be 0 for shape (0, 3)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        write_npy(1, cases[i].header, six, sizeof six);
        expect_refused(cases[i].rule);
    }
}

/* Any damage is either harmless or refused in one line. */
static void survives_cuts_and_flipped_bits(void **state)
{
    (void)state;
    char error[300];
    size_t rows;
    size_t columns;
    size_t size;
    assert_true(npy_write_f32(scratch_path, 2, 3, six, error, sizeof error));
    unsigned char *good = scratch_read(&size);
    for (size_t cut = 0; cut < size; ++cut) {
        scratch_write(good, cut);
        assert_null(npy_read_f32(scratch_path, &rows, &columns, error, sizeof error));
        assert_one_line(error);
    }
    for (size_t bit = 0; bit < 8 * (size - sizeof six); ++bit) {
        good[bit / 8] ^= (unsigned char)(1u << bit % 8);
        scratch_write(good, size);
        float *values = npy_read_f32(scratch_path, &rows, &columns, error, sizeof error);
        if (values == NULL) {
            assert_one_line(error);
        } else {
            assert_memory_equal(values, six, sizeof six);
        }
        free(values);
        good[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(good);
}

static void writes_what_it_reads(void **state)
{
    (void)state;
    char error[300] = "";
    size_t size;
    assert_true(npy_write_f32(scratch_path, 2, 3, six, error, sizeof error));
    expect_six();
    unsigned char *bytes = scratch_read(&size);
    assert_int_equal(size, 128 + sizeof six);
    assert_memory_equal(bytes, START "\x76\x00" HEADER_2x3 "  ", 10 + sizeof HEADER_2x3 - 1 + 2);
    assert_int_equal(bytes[127], '\n');
    free(bytes);

    size_t rows;
    size_t columns;
    assert_true(npy_write_f32(scratch_path, 0, 64, NULL, error, sizeof error));
    float *none = npy_read_f32(scratch_path, &rows, &columns, error, sizeof error);
    assert_non_null(none);
    assert_int_equal(rows, 0);
    assert_int_equal(columns, 64);
    free(none);
    assert_int_equal(scratch_count(), 1);
}

static void writes_all_or_nothing(void **state)
{
    (void)state;
    char error[300] = "";
    assert_true(npy_write_f32(scratch_path, 2, 3, six, error, sizeof error));

    float *large = calloc(100000, sizeof *large);
    assert_non_null(large);
    limit_file_size(true);
    const bool full = npy_write_f32(scratch_path, 1000, 100, large, error, sizeof error);
    limit_file_size(false);
    free(large);
    assert_false(full);
    assert_refused(error, "File too large");
    assert_int_equal(scratch_count(), 1);
    expect_six();

    lock_folder(true);
    const bool locked = npy_write_f32(scratch_path, 1, 1, six, error, sizeof error);
    lock_folder(false);
    assert_false(locked);
    assert_refused(error, "Permission denied");
    expect_six();

    unlink(scratch_path);
    assert_int_equal(mkfifo(scratch_path, 0600), 0);
    assert_false(npy_write_f32(scratch_path, 2, 3, six, error, sizeof error));
    assert_refused(error, "is not a regular file");
    expect_refused("is not a regular file");
    assert_false(npy_write_f32("/no/such/folder/y.npy", 2, 3, six, error, sizeof error));
    assert_string_equal(error, "/no/such/folder/y.npy: No such file or directory");
    assert_int_equal(scratch_count(), 1);
}

/* The kernel says that this file is a page long; like a file that is cut off meanwhile, it ends before that. */
static void refuses_what_was_cut_off_meanwhile(void **state)
{
    (void)state;
    const char *const path = "/sys/devices/system/cpu/online";
    char error[300] = "";
    size_t rows, columns;
    struct stat status;
    if (stat(path, &status) != 0 || status.st_size < 4096) {
        skip();
    }
    assert_null(npy_read_f32(path, &rows, &columns, error, sizeof error));
    assert_non_null(strstr(error, ": was cut off while it was read: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_spelling_of_a_header),
        cmocka_unit_test(passes_non_finite_values_and_zero_rows),
        cmocka_unit_test(converts_float64),
        cmocka_unit_test(refuses_what_is_no_npy),
        cmocka_unit_test(refuses_bad_headers),
        cmocka_unit_test(survives_cuts_and_flipped_bits),
        cmocka_unit_test(refuses_what_was_cut_off_meanwhile),
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(writes_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
