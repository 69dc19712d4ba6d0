/* AdamW, sums of squares and the order of windows, against their definitions. */
#include "gen/weights/random.h"
#include "harness/train/batches.h"
#include "harness/train/optimiser.h"

/* cmocka.h needs the first four */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1001, STEPS = 30 };

static void adam_is_its_definition(void **state)
{
    (void)state;
    static float weights[COUNT], gradients[COUNT], first[COUNT], second[COUNT];
    static double exact[COUNT], mean[COUNT], square[COUNT];
    random_state random = random_seed(3);
    random_fill(&random, weights, COUNT, 0, 1);
    for (int i = 0; i < COUNT; ++i)
        exact[i] = (double)weights[i];
    for (int step = 1; step <= STEPS; ++step) {
        random_fill(&random, gradients, COUNT, 0.1, 2);
        const adam_step s = adam_at((size_t)step, 0.01f, 0.1f, 0.9f, 0.98f, 1e-8f);
        adam_update(&s, 0.5f, weights, gradients, first, second, COUNT);
        for (int i = 0; i < COUNT; ++i) {
            const double g = 0.5 * (double)gradients[i];
            mean[i] = 0.9 * mean[i] + 0.1 * g;
            square[i] = 0.98 * square[i] + 0.02 * g * g;
            exact[i] -= 0.01 * 0.1 * exact[i];
            exact[i] -= 0.01 * (mean[i] / (1 - pow(0.9, step))) / (sqrt(square[i] / (1 - pow(0.98, step))) + 1e-8);
        }
    }
    for (int i = 0; i < COUNT; ++i)
        assert_true(fabs((double)weights[i] - exact[i]) < 2e-5);
}

static void averages_fade_to_nothing(void **state)
{
    (void)state;
    static float weights[COUNT], gradients[COUNT], first[COUNT], second[COUNT];
    for (int i = 0; i < COUNT; ++i)
        gradients[i] = (float)(i + 1);
    for (size_t step = 1; step <= 2000; ++step) {
        const adam_step s = adam_at(step, 0.01f, 0, 0.9f, 0.95f, 1e-8f);
        adam_update(&s, 1, weights, gradients, first, second, COUNT);
        memset(gradients, 0, sizeof gradients);
        for (int i = 0; i < COUNT; ++i) /* never a denormal on the way */
            assert_true((first[i] == 0.0f || isnormal(first[i])) && (second[i] == 0.0f || isnormal(second[i])));
    }
    for (int i = 0; i < COUNT; ++i)
        assert_true(first[i] == 0.0f && second[i] == 0.0f && weights[i] < 0 && isfinite(weights[i]));
}

static void squares_are_summed(void **state)
{
    (void)state;
    static float values[COUNT];
    random_state random = random_seed(4);
    random_fill(&random, values, COUNT, 0, 1);
    for (int count = 0; count < 40; ++count) {
        double sum = 0;
        for (int i = 0; i < count; ++i)
            sum += (double)values[i] * (double)values[i];
        assert_true(fabs(sum_of_squares(values, (size_t)count) - sum) <= 1e-12 * sum);
    }
}

static void a_pass_takes_each_window_once(void **state)
{
    (void)state;
    static int32_t ids[5000];
    for (int i = 0; i < 5000; ++i)
        ids[i] = i;
    const size_t counts[] = {9, 16, 17, 24, 25, 100, 4097, 5000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
        const batches b = {ids, counts[c], 8, 77};
        const size_t windows = batches_windows(&b);
        assert_true(windows >= 1 && windows + 1 >= (counts[c] - 1) / 8);
        size_t in_order = 0;
        for (uint64_t pass = 0; pass < 3; ++pass) {
            char *seen = calloc(windows, 1);
            size_t first = SIZE_MAX;
            for (size_t i = 0; i < windows; ++i) {
                const size_t at = batches_start(&b, pass * windows + i);
                if (at < first)
                    first = at;
                assert_true(at + 8 < counts[c]);
                in_order += i > 0 && at == batches_start(&b, pass * windows + i - 1) + 8;
            }
            for (size_t i = 0; i < windows; ++i) {
                const size_t window = (batches_start(&b, pass * windows + i) - first) / 8;
                assert_true(window < windows && !seen[window]);
                seen[window] = 1;
            }
            free(seen);
        }
        assert_true(windows < 20 || in_order < windows / 4);
    }
    const batches short_text = {ids, 8, 8, 1};
    assert_int_equal(batches_windows(&short_text), 0);
}

static void targets_follow_ids(void **state)
{
    (void)state;
    static int32_t ids[1000];
    for (int i = 0; i < 1000; ++i)
        ids[i] = i;
    const batches b = {ids, 1000, 16, 5}, other = {ids, 1000, 16, 6};
    int32_t window[16], targets[16], differing = 0;
    for (uint64_t i = 0; i < 50; ++i) {
        batches_next(&b, i, window, targets);
        for (int k = 0; k < 16; ++k)
            assert_int_equal(targets[k], window[k] + 1);
        differing += batches_start(&b, i) != batches_start(&other, i);
    }
    assert_true(differing > 40);
}

static void masks_are_as_many_as_asked_for(void **state)
{
    (void)state;
    static int32_t ids[20000];
    for (int i = 0; i < 20000; ++i)
        ids[i] = 5 + i % 90;
    const batches b = {ids, 20000, 100, 5};
    const batches_masks masks = {.mask = 4, .vocab = 100, .share = 0.15};
    int32_t window[100], targets[100], plain[100], next[100], counted = 0, masked = 0, kept = 0;
    for (uint64_t i = 0; i < 198; ++i) {
        batches_masked(&b, &masks, i, window, targets);
        batches_next(&b, i, plain, next);
        for (int k = 0; k < 100; ++k) {
            if (targets[k] < 0) {
                assert_int_equal(window[k], plain[k]);
                continue;
            }
            assert_int_equal(targets[k], plain[k]);
            ++counted;
            masked += window[k] == 4;
            kept += window[k] == plain[k];
        }
    }
    assert_true(counted > 2700 && counted < 3240); /* 19,800 tokens */
    assert_true(masked > counted * 7 / 10 && masked < counted * 9 / 10);
    assert_true(kept > counted / 20 && kept < counted / 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam_is_its_definition), cmocka_unit_test(averages_fade_to_nothing),
        cmocka_unit_test(squares_are_summed),     cmocka_unit_test(a_pass_takes_each_window_once),
        cmocka_unit_test(targets_follow_ids),     cmocka_unit_test(masks_are_as_many_as_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
