/* A blob in memory has the bytes of its file, a large one where a huge page can lie, and failures are one line. */
#include "tests/support/scratch.h"

#include "harness/base/blob_memory.h"

#include <sys/mman.h>

static char error[600];

static unsigned char byte_at(size_t place)
{
    return (unsigned char)(place * 131 >> 7);
}

static void write_blob(size_t bytes)
{
    unsigned char *data = malloc(bytes + 1);
    assert_non_null(data);
    for (size_t i = 0; i < bytes; ++i)
        data[i] = byte_at(i);
    scratch_write(data, bytes);
    free(data);
}

static void has_the_bytes_of_its_file(void **state)
{
    (void)state;
    const size_t large = (size_t)4 << 20, sizes[] = {1, 4096, large - 1, large, large + 1, ((size_t)9 << 20) + 12345};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        files_mapping blob;
        write_blob(sizes[i]);
        assert_true(blob_map(scratch_path, &blob, error, sizeof error));
        assert_int_equal(blob.bytes, sizes[i]);
        assert_int_equal((uintptr_t)blob.data % (sizes[i] < large ? 64 : 2 << 20), 0);
        size_t wrong = 0;
        for (size_t at = 0; at < sizes[i]; ++at)
            wrong += blob.data[at] != byte_at(at);
        assert_int_equal(wrong, 0);
        files_unmap(&blob);
        assert_null(blob.data);
    }
}

/* Pages of this process. */
static size_t mapped_pages(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages;
}

static void leaves_nothing_mapped(void **state)
{
    (void)state;
    write_blob(((size_t)6 << 20) + 1);
    const size_t before = mapped_pages();
    for (int i = 0; i < 5; ++i) {
        files_mapping blob;
        assert_true(blob_map(scratch_path, &blob, error, sizeof error));
        files_unmap(&blob);
    }
    assert_int_equal(mapped_pages(), before);
}

static void failures_are_one_line(void **state)
{
    (void)state;
    files_mapping blob;
    write_blob((size_t)6 << 20);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    const struct rlimit little = {mapped_pages() * (size_t)sysconf(_SC_PAGESIZE) + ((size_t)7 << 20), limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    const bool mapped = blob_map(scratch_path, &blob, error, sizeof error);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    assert_false(mapped);
    assert_refused(error, "Cannot allocate memory");
    assert_null(blob.data);
    unlink(scratch_path);
    assert_false(blob_map(scratch_path, &blob, error, sizeof error));
    assert_refused(error, "No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_bytes_of_its_file),
        cmocka_unit_test(leaves_nothing_mapped),
        cmocka_unit_test(failures_are_one_line),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
