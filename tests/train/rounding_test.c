/* What passes forward read of rounded tensors, against the definition of folded weights that `pack` rounds. */
#include "gen/weights/random.h"
#include "harness/train/rounding.h"

/* cmocka.h needs the first four */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 8, BLOCKS = 4, REPEATS = 2, STAGE = BLOCKS * BLOCK * BLOCK, COUNT = REPEATS * 4 * STAGE };

static const double decay = 0.7;

/* The folded element `o`, `i` of block number `block` of all: H W by the definition of H, times decay in the last of four stages. */
static double folded(const float *weights, size_t block, size_t o, size_t i)
{
    double sum = 0;
    for (size_t k = 0; k < BLOCK; ++k) {
        const double value = (double)weights[(block * BLOCK + k) * BLOCK + i];
        sum += __builtin_parity((unsigned)(o & k)) ? -value : value;
    }
    return block / BLOCKS % 4 == 3 ? decay * sum : sum;
}

static rounding bh4_of(quantise_type type)
{
    return (rounding){
        .type = type,
        .row = BLOCK,
        .hadamard = BLOCK,
        .at = 3 * STAGE,
        .rank = 2,
        .dims = {{.count = REPEATS, .from = 4 * STAGE}, {.count = STAGE, .from = 1}},
        .factor = decay,
    };
}

/* Every row of folded weights is what is nearest in units of its largest / 127; of bf16 each has 8 significant bits. */
static void folded_rows_are_rounded(void **state)
{
    (void)state;
    static float weights[COUNT], rounded[COUNT], scales[COUNT];
    static double work[COUNT];
    random_state random = random_seed(5);
    random_fill(&random, weights, COUNT, 0, 0.3);
    const rounding i8 = bh4_of(QUANTISE_I8), bf16 = bh4_of(QUANTISE_BF16);
    rounding_apply(&i8, weights, COUNT, rounded, work, scales);
    double moved = 0;
    for (size_t block = 0; block < (size_t)COUNT / (BLOCK * BLOCK); ++block)
        for (size_t o = 0; o < BLOCK; ++o) {
            double largest = 0;
            for (size_t i = 0; i < BLOCK; ++i)
                largest = fmax(largest, fabs(folded(weights, block, o, i)));
            const double scale = (double)(float)(largest / 127);
            for (size_t i = 0; i < BLOCK; ++i) {
                const double wanted = scale * rint(folded(weights, block, o, i) / scale), found = folded(rounded, block, o, i);
                assert_true(fabs(found - wanted) < 2e-6);
                moved = fmax(moved, fabs(wanted - folded(weights, block, o, i)));
            }
        }
    assert_true(moved > 1e-3);
    rounding_apply(&bf16, weights, COUNT, rounded, work, scales);
    for (size_t k = 0; k < COUNT; ++k) {
        const double before = folded(weights, k / (BLOCK * BLOCK), k / BLOCK % BLOCK, k % BLOCK);
        const double after = folded(rounded, k / (BLOCK * BLOCK), k / BLOCK % BLOCK, k % BLOCK);
        const double unit = ldexp(1, ilogb(before) - 7);
        assert_true(fabs(after - unit * rint(before / unit)) < 2e-6);
    }
}

static void rows_of_tables_are_rounded(void **state)
{
    (void)state;
    enum { WIDTH = 37 };
    float row[WIDTH], rounded[WIDTH], scale;
    double work[WIDTH];
    random_state random = random_seed(6);
    random_fill(&random, row, WIDTH, 0, 1);
    const rounding r = {.type = QUANTISE_I8, .row = WIDTH};
    rounding_apply(&r, row, WIDTH, rounded, work, &scale);
    for (size_t i = 0; i < WIDTH; ++i)
        assert_true(fabs((double)rounded[i] - (double)scale * rint((double)row[i] / (double)scale)) < 1e-7);
    memset(row, 0, sizeof row);
    rounding_apply(&r, row, WIDTH, rounded, work, &scale);
    assert_memory_equal(rounded, row, sizeof row);
    row[3] = 1e30f;
    const rounding f16 = {.type = QUANTISE_F16, .row = WIDTH}; /* has no such number */
    rounding_apply(&f16, row, WIDTH, rounded, work, &scale);
    assert_true(isnan(rounded[0]));
}

/* What rounding takes from weights that a step then moves is given back: the step is all that stays. */
static void lost_parts_are_given_back(void **state)
{
    (void)state;
    enum { WIDTH = 40 };
    float row[WIDTH], before[WIDTH], lost[WIDTH], rounded[WIDTH], scale;
    double work[WIDTH];
    random_state random = random_seed(7);
    random_fill(&random, before, WIDTH, 0, 1);
    memcpy(row, before, sizeof row);
    const rounding r = {.type = QUANTISE_I4, .row = WIDTH};
    rounding_apply(&r, row, WIDTH, rounded, work, &scale);
    rounding_take(&r, row, WIDTH, lost, work, &scale);
    assert_memory_equal(row, rounded, sizeof row);
    for (size_t i = 0; i < WIDTH; ++i)
        assert_true(fabs((double)(row[i] + 0.01f + lost[i]) - (double)before[i] - 0.01) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_rows_are_rounded),
        cmocka_unit_test(rows_of_tables_are_rounded),
        cmocka_unit_test(lost_parts_are_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
