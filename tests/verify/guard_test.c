/* Guarded memory notices a write beside it, and a guard page stops whoever touches it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/guard.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t sizes[] = {0, 1, 4, 60, 64, 100, 4092, 4096, 5000};
#define SIZES (sizeof sizes / sizeof *sizes)

/* Whether writing data[at], or only reading it, ends a process. */
static bool dies(const guarded *memory, ptrdiff_t at, bool writes)
{
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL);
        volatile unsigned char *byte = memory->data + at;
        const unsigned char value = *byte;
        if (writes)
            *byte = value;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void lies_where_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; ++i) {
        guarded memory;
        assert_true(guard_create(&memory, sizes[i], 4, GUARD_END));
        assert_int_equal((uintptr_t)memory.data % 4, 0);
        assert_int_equal(dies(&memory, (ptrdiff_t)sizes[i], false), sizes[i] % 4 == 0);
        guard_free(&memory);
        assert_true(guard_create(&memory, sizes[i], 64, GUARD_START));
        assert_int_equal((uintptr_t)memory.data % 64, 0);
        assert_true(dies(&memory, -1, false));
        guard_free(&memory);
        assert_true(guard_create(&memory, sizes[i], 64, GUARD_UNALIGNED));
        assert_int_equal((uintptr_t)memory.data % 64, 4);
        guard_free(&memory);
    }
}

static void notices_a_write_beside_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; ++i) {
        for (guard_place place = GUARD_END; place <= GUARD_UNALIGNED; ++place) {
            guarded memory;
            assert_true(guard_create(&memory, sizes[i], 64, place));
            for (size_t at = 0; at < sizes[i]; ++at)
                memory.data[at] = 1;
            assert_true(guard_intact(&memory));
            if (memory.data > memory.pages) {
                memory.data[-1] = 0;
                assert_false(guard_intact(&memory));
                memory.data[-1] = 0xFF;
            }
            if (memory.data + sizes[i] < memory.pages + memory.page_bytes) {
                memory.data[sizes[i]] = 0;
                assert_false(guard_intact(&memory));
            }
            guard_free(&memory);
        }
    }
}

static void read_only_means_it(void **state)
{
    (void)state;
    guarded memory;
    assert_true(guard_create(&memory, 100, 4, GUARD_END));
    assert_false(dies(&memory, 0, true));
    guard_read_only(&memory);
    assert_false(dies(&memory, 0, false));
    assert_true(dies(&memory, 0, true));
    guard_free(&memory);
    guard_free(&(guarded){0});
}

/* What is given back is used again, whatever was done to it. */
static void is_fresh_when_used_again(void **state)
{
    (void)state;
    for (size_t round = 0; round < 3; ++round) {
        guarded memory[SIZES];
        for (size_t i = 0; i < SIZES; ++i) {
            assert_true(guard_create(&memory[i], sizes[i], 4, GUARD_END));
            for (size_t at = 0; at < sizes[i]; ++at) {
                assert_int_equal(memory[i].data[at], 0xFF);
                memory[i].data[at] = 0;
            }
            assert_true(guard_intact(&memory[i]));
            assert_int_equal(dies(&memory[i], (ptrdiff_t)sizes[i], false), sizes[i] % 4 == 0);
            guard_read_only(&memory[i]);
        }
        for (size_t i = 0; i < SIZES; ++i)
            guard_free(&memory[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_where_asked),
        cmocka_unit_test(notices_a_write_beside_it),
        cmocka_unit_test(read_only_means_it),
        cmocka_unit_test(is_fresh_when_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
