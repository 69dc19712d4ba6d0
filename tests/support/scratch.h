/* For the tests of file formats: a scratch folder, files of given bytes in it, and ways to make writing fail. */
#ifndef LOOKUPC_TESTS_SCRATCH_H
#define LOOKUPC_TESTS_SCRATCH_H

/* cmocka.h needs the first four */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder, and the one file in it that most tests read or write. */
static char scratch_folder[] = "/tmp/lookupc-test-XXXXXX";
static char scratch_path[sizeof scratch_folder + 2];

static inline int scratch_create(void **state)
{
    (void)state;
    if (mkdtemp(scratch_folder) == NULL) {
        return -1;
    }
    snprintf(scratch_path, sizeof scratch_path, "%s/f", scratch_folder);
    return 0;
}

static inline int scratch_remove(void **state)
{
    (void)state;
    unlink(scratch_path);
    return rmdir(scratch_folder); /* fails when a temporary file was left behind */
}

/* Makes scratch_path a file of bytes[size]. */
static inline void scratch_write(const void *bytes, size_t size)
{
    FILE *file = fopen(scratch_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The bytes of scratch_path, from malloc, followed by a 0. */
static inline unsigned char *scratch_read(size_t *size)
{
    FILE *file = fopen(scratch_path, "rb");
    assert_non_null(file);
    struct stat status;
    assert_int_equal(fstat(fileno(file), &status), 0);
    *size = (size_t)status.st_size;
    unsigned char *bytes = calloc(*size + 1, 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* The number of files in the folder. */
static inline int scratch_count(void)
{
    DIR *folder = opendir(scratch_folder);
    assert_non_null(folder);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(folder);
    return count;
}

/* The message must be "<scratch_path>: <rule>". */
static inline void assert_refused(const char *message, const char *rule)
{
    char expected[600];
    snprintf(expected, sizeof expected, "%s: %s", scratch_path, rule);
    assert_string_equal(message, expected);
}

/* The message must be one line that starts with "<scratch_path>: " and says something. */
static inline void assert_one_line(const char *message)
{
    const size_t start = strlen(scratch_path);
    assert_memory_equal(message, scratch_path, start);
    assert_memory_equal(message + start, ": ", 2);
    assert_true(strlen(message) > start + 2);
    for (const char *c = message; *c != '\0'; ++c) {
        assert_true((unsigned char)*c >= ' ');
    }
}

/* Lets every file end at 8 KiB, as a full disk would, or at no limit again. */
static inline void limit_file_size(bool limited)
{
    signal(SIGXFSZ, limited ? SIG_IGN : SIG_DFL);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = limited ? 8192 : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Makes the folder read-only, also for root, who becomes nobody meanwhile; or writable again. */
static inline void lock_folder(bool locked)
{
    static bool was_root;
    if (locked) {
        assert_int_equal(chmod(scratch_folder, 0555), 0);
        was_root = geteuid() == 0;
        if (was_root && seteuid(65534) != 0) {
            chmod(scratch_folder, 0700);
            skip();
        }
    } else {
        assert_true(!was_root || seteuid(0) == 0);
        assert_int_equal(chmod(scratch_folder, 0700), 0);
    }
}

#endif
