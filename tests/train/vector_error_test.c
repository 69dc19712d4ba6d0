/* The slopes of the error of a vector are those of finite differences, for every kind of map. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/convert/vector_error.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 7, OUT = 5 };

static float drawn(void)
{
    return (float)rand() / (float)RAND_MAX - 0.5f;
}

static void slopes_are_those_of_finite_differences(void **state)
{
    (void)state;
    for (int kind = 0; kind < 12; ++kind) {
        float weight[OUT * WIDTH], bias[OUT], own[WIDTH], wanted[WIDTH], slopes[WIDTH], others[WIDTH];
        srand((unsigned)kind + 1);
        for (int i = 0; i < OUT * WIDTH; ++i)
            weight[i] = drawn();
        for (int i = 0; i < OUT; ++i)
            bias[i] = drawn();
        for (int i = 0; i < WIDTH; ++i) {
            own[i] = drawn();
            wanted[i] = drawn();
        }
        const bool mapped = kind % 2, unit = kind / 2 % 2;
        vector_map map = {WIDTH, mapped ? OUT : WIDTH, mapped ? weight : NULL, mapped ? bias : NULL, VECTOR_LINEAR, unit};
        map.activation = kind / 4 == 1 ? VECTOR_TANH : kind / 4 == 2 ? VECTOR_RELU : VECTOR_LINEAR;
        vector_error *e = vector_error_create(&map);
        assert_non_null(e);
        const double error = vector_error_of(e, own, wanted, slopes);
        assert_true(error > 0 && isfinite(error));
        for (int k = 0; k < WIDTH; ++k) {
            const float step = 1e-2f, before = own[k];
            own[k] = before + step;
            const double above = vector_error_of(e, own, wanted, others);
            own[k] = before - step;
            const double below = vector_error_of(e, own, wanted, others);
            own[k] = before;
            const double slope = (above - below) / (4 * (double)step); /* of half of the error */
            assert_true(fabs(slope - (double)slopes[k]) < 1e-3 * (1 + fabs(slope)));
        }
        assert_true(vector_error_of(e, wanted, wanted, slopes) < 1e-12);
        vector_error_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slopes_are_those_of_finite_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
