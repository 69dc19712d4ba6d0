/* The lower quartile of times lies where it should, and long times do not move it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/measure/quartile.h"

static void lies_between_the_values_around_it(void **state)
{
    (void)state;
    double one[] = {3.0}, two[] = {5.0, 1.0}, four[] = {9.0, 1.0, 2.0, 3.0};
    assert_true(measure_lower_quartile(one, 1) == 3.0);
    assert_true(measure_lower_quartile(two, 2) == 2.0);
    assert_true(measure_lower_quartile(four, 4) == 1.75);
}

static void long_times_do_not_move_it(void **state)
{
    (void)state;
    double five[] = {50.0, 2.0, 10.0, 1.0, 40.0}, longer[] = {5000.0, 2.0, 1000.0, 1.0, 4000.0};
    assert_true(measure_lower_quartile(five, 5) == 2.0);
    assert_true(measure_lower_quartile(longer, 5) == 2.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_between_the_values_around_it),
        cmocka_unit_test(long_times_do_not_move_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
