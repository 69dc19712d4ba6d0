/* Matrices rounded in groups for their inputs: outputs are nearer than with each weight rounded to the nearest, by products of their own.
 */
#include "gen/weights/cholesky.h"
#include "gen/weights/quantise.h"
#include "gen/weights/random.h"
#include "gen/weights/round_for_inputs.h"
#include "gen/weights/safetensors.h"

/* cmocka.h needs the first four */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 24, COLUMNS = 80, GROUPS = 3, INPUTS = 400, SOURCES = 20 };

static double weights[ROWS][COLUMNS], x[INPUTS][COLUMNS], moments[COLUMNS * COLUMNS];

/* Inputs that are mixtures of a few sources and a little of their own. */
static void draw(void)
{
    random_state random = random_seed(7);
    static float mix[COLUMNS][SOURCES], source[INPUTS][SOURCES], own[INPUTS][COLUMNS], w[ROWS][COLUMNS];
    random_fill(&random, &mix[0][0], COLUMNS * SOURCES, 0.0, 1.0);
    random_fill(&random, &source[0][0], INPUTS * SOURCES, 0.0, 1.0);
    random_fill(&random, &own[0][0], INPUTS * COLUMNS, 0.0, 0.3);
    random_fill(&random, &w[0][0], ROWS * COLUMNS, 0.1, 1.0);
    for (size_t t = 0; t < INPUTS; ++t)
        for (size_t i = 0; i < COLUMNS; ++i) {
            x[t][i] = (double)own[t][i];
            for (size_t s = 0; s < SOURCES; ++s)
                x[t][i] += (double)(mix[i][s] * source[t][s]);
        }
    memset(moments, 0, sizeof moments);
    for (size_t t = 0; t < INPUTS; ++t)
        for (size_t i = 0; i < COLUMNS * COLUMNS; ++i)
            moments[i] += x[t][i / COLUMNS] * x[t][i % COLUMNS];
    for (size_t i = 0; i < ROWS * COLUMNS; ++i)
        weights[i / COLUMNS][i % COLUMNS] = (double)w[i / COLUMNS][i % COLUMNS];
}

/* The sum of squares of what outputs are with these rows in place of the weights. */
static double off(double rounded[ROWS][COLUMNS])
{
    double sum = 0.0;
    for (size_t t = 0; t < INPUTS; ++t)
        for (size_t r = 0; r < ROWS; ++r) {
            double y = 0.0;
            for (size_t i = 0; i < COLUMNS; ++i)
                y += (rounded[r][i] - weights[r][i]) * x[t][i];
            sum += y * y;
        }
    return sum;
}

static double half(const uint16_t *bits)
{
    return safetensors_from_f16((const unsigned char *)bits);
}

static void outputs_are_nearer(void **state)
{
    (void)state;
    for (int minimum = 0; minimum < 2; ++minimum) {
        static double kept[ROWS][COLUMNS], plain[ROWS][COLUMNS];
        static unsigned char halves[ROWS][COLUMNS / 2];
        static uint16_t scales[ROWS][GROUPS][2];
        const size_t numbers = minimum ? 2 : 1;
        draw();
        memcpy(kept, weights, sizeof kept);
        memcpy(plain, weights, sizeof plain);
        for (size_t r = 0; r < ROWS; ++r)
            for (size_t at = 0; at < COLUMNS; at += 32) {
                uint16_t scale, low = 0;
                const size_t count = COLUMNS - at < 32 ? COLUMNS - at : 32;
                assert_true(quantise_group(plain[r] + at, count, 4, &scale, minimum ? &low : NULL, NULL));
                for (size_t i = at; i < at + count; ++i)
                    plain[r][i] = plain[r][i] * half(&scale) + (minimum ? half(&low) : 0.0);
            }
        rounded_matrix m = {.rows = ROWS,
                            .columns = COLUMNS,
                            .minimum = minimum,
                            .weights = &kept[0][0],
                            .moments = moments,
                            .inputs = INPUTS,
                            .halves = &halves[0][0],
                            .scales = &scales[0][0][0]};
        assert_int_equal(round_for_inputs(&m), ROUND_FOR_INPUTS_DONE);
        const double error = off(kept), other = off(plain);
        assert_true(error < 0.3 * other);
        assert_true(fabs(m.error - error) < 1e-6 * error && fabs(m.nearest_error - other) < 1e-6 * other);
        for (size_t r = 0; r < ROWS; ++r) /* integers and scales say what it became */
            for (size_t i = 0; i < COLUMNS; ++i) {
                const int bits = halves[r][i / 2] >> i % 2 * 4 & 15;
                const uint16_t *const of = &scales[0][0][0] + (r * GROUPS + i / 32) * numbers;
                const double value = (minimum || bits < 8 ? bits : bits - 16) * half(of) + (minimum ? half(of + 1) : 0.0);
                assert_true(fabs(value - kept[r][i]) <= 1e-12);
            }
    }
}

/* A weight of half a unit and one of the same input: what the first loses, the second makes up for. */
static void one_weight_makes_up_for_another(void **state)
{
    (void)state;
    double row[32] = {7.0, 0.5, 0.5}, ones[32 * 32];
    unsigned char halves[16];
    uint16_t scale;
    for (size_t i = 0; i < 32 * 32; ++i)
        ones[i] = i / 32 == i % 32 || (i / 32 < 3 && i % 32 < 3 && i / 32 > 0 && i % 32 > 0) ? 100.0 : 0.0;
    rounded_matrix m = {.rows = 1, .columns = 32, .weights = row, .moments = ones, .inputs = 10000, .halves = halves, .scales = &scale};
    assert_int_equal(round_for_inputs(&m), ROUND_FOR_INPUTS_DONE);
    assert_true(fabs(row[1] + row[2] - 1.0) < 0.2 && m.error < m.nearest_error);
    row[0] = 1e9;
    assert_int_equal(round_for_inputs(&m), ROUND_FOR_INPUTS_TOO_LARGE);
}

/* By blocks as at once, and V V^T is the matrix. */
static void factors_in_blocks(void **state)
{
    (void)state;
    static double blocks[COLUMNS * COLUMNS], whole[COLUMNS * COLUMNS];
    draw();
    memcpy(blocks, moments, sizeof blocks);
    memcpy(whole, moments, sizeof whole);
    cholesky_upper(blocks, COLUMNS, 7);
    cholesky_upper(whole, COLUMNS, COLUMNS);
    for (size_t i = 0; i < COLUMNS; ++i)
        for (size_t j = i; j < COLUMNS; ++j) {
            double sum = 0.0;
            for (size_t l = j; l < COLUMNS; ++l)
                sum += blocks[i * COLUMNS + l] * blocks[j * COLUMNS + l];
            assert_true(fabs(sum - moments[i * COLUMNS + j]) < 1e-9 * moments[0]);
            assert_true(fabs(blocks[i * COLUMNS + j] - whole[i * COLUMNS + j]) < 1e-7);
        }
}

/* The value of half precision with these bits. */
static double half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    return (bits >> 15 ? -1.0 : 1.0) * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/* Groups of values down to where half precision ends, in 8 bits and 4: they lose no more than as zeros, those in 8 bits no more than with
   the next scale above, and ordinary ones have the nearest scale. What is lost of a tensor tells whether it is too small. */
static void small_groups(void **state)
{
    (void)state;
    enum { COUNT = 32 };
    random_state random = random_seed(3);
    for (int k = 0; k < 3000; ++k) {
        const double size = ldexp(1.0, -26 + k % 24) * (1.0 + random_uniform(&random)), middle = k % 5 == 0 ? size : 0.0;
        double data[COUNT], largest = 0.0;
        for (size_t i = 0; i < COUNT; ++i) {
            data[i] = middle + size * (2.0 * random_uniform(&random) - 1.0);
            largest = fmax(largest, fabs(data[i]));
        }
        for (int type = 0; type < 3; ++type) {
            double units[COUNT], above = 0.0;
            uint16_t scale = 0, low = 0;
            quantise_tally tally = {0};
            memcpy(units, data, sizeof units);
            assert_true(quantise_group(units, COUNT, type == 0 ? 8 : 4, &scale, type == 1 ? &low : NULL, &tally));
            assert_true(tally.error <= tally.power);
            assert_true(quantise_too_small(&tally, quantise_levels(type == 0 ? 8 : 4, type == 1)) ? size < 3e-6
                                                                                                  : size > (type ? 3e-8 : 4e-7));
            if (type > 0)
                continue;
            const double unit = half_value((uint16_t)(scale + 1));
            for (size_t i = 0; i < COUNT; ++i) {
                const double error = fmin(rint(fabs(data[i]) / unit), 127.0) * unit - fabs(data[i]);
                above += error * error;
            }
            assert_true(largest / 127.0 < 2e-5 ? tally.error <= above || half_value(scale) >= largest / 127.5
                                               : fabs(half_value(scale) - largest / 127.0) <= largest / 127.0 / 512.0);
        }
    }
}

/* Of scales that lose the same the first is taken, in the order that docs/types.md says. */
static void equal_scales(void **state)
{
    (void)state;
    static const struct {
        double data[2];
        int bits;
        bool minimum;
        double scale, least;
    } cases[] = {
        {{1.0, 0.0}, 4, false, -0.125, 0.0}, {{0.0, -1.0}, 4, false, 0.125, 0.0}, {{1.0, -1.0}, 4, false, 0.25, 0.0},
        {{-1.0, 1.0}, 4, false, -0.25, 0.0}, {{0.0, 15.0}, 4, true, 1.0, 0.0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        double units[2];
        uint16_t scale, low = 0;
        memcpy(units, cases[k].data, sizeof units);
        assert_true(quantise_group(units, 2, cases[k].bits, &scale, cases[k].minimum ? &low : NULL, NULL));
        assert_true(fabs(half_value(scale) - cases[k].scale) < 1e-12 && fabs(half_value(low) - cases[k].least) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_nearer), cmocka_unit_test(one_weight_makes_up_for_another),
        cmocka_unit_test(factors_in_blocks),  cmocka_unit_test(small_groups),
        cmocka_unit_test(equal_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
