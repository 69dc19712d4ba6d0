/* Rows that a cache keeps are those of their source, also where it has room for a part of them only, and failures are not kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/reference/row_cache.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    size_t d_out, read;
    bool broken;
} numbers;

static double value_of(size_t table, size_t code, size_t o)
{
    return (double)(1000 * table + 100 * code) + (double)(o % 97);
}

static bool number_row(void *source, size_t table, size_t code, double *row)
{
    numbers *n = source;
    ++n->read;
    for (size_t o = 0; o < n->d_out; ++o)
        row[o] = value_of(table, code, o);
    return !n->broken;
}

static double number_scale(void *source, size_t table, size_t code)
{
    return ((numbers *)source)->broken ? NAN : value_of(table, code, 5);
}

static void check_all(const reference_weights *weights, const reference_model *model, double *row)
{
    for (size_t table = 0; table < model->h; ++table)
        for (size_t code = 0; code < (size_t)1 << model->tau; ++code) {
            assert_true(weights->row(weights->row_source, table, code, row));
            for (size_t o = 0; o < model->d_out; ++o)
                assert_true(row[o] == value_of(table, code, o));
            assert_true(weights->row_scale(weights->row_source, table, code) == value_of(table, code, 5));
        }
}

static void rows_are_those_of_the_source(void **state)
{
    (void)state;
    const struct {
        size_t d_out;
        bool holds_all;
    } cases[] = {{7, true}, {(size_t)1 << 20, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const reference_model model = {.h = 3, .tau = 2, .d_out = cases[i].d_out};
        numbers source = {.d_out = model.d_out};
        reference_weights weights = {.row = number_row, .row_source = &source, .row_scale = number_scale};
        row_cache cache;
        assert_true(row_cache_open(&cache, &model, &weights));
        double *row = malloc(model.d_out * sizeof *row);
        assert_non_null(row);
        check_all(&weights, &model, row);
        assert_int_equal(source.read, 12);
        check_all(&weights, &model, row);
        assert_true((source.read == 12) == cases[i].holds_all);
        free(row);
        row_cache_close(&cache);
    }
}

static void a_row_that_cannot_be_read_is_not_kept(void **state)
{
    (void)state;
    const reference_model model = {.h = 1, .tau = 1, .d_out = 2};
    numbers source = {.d_out = 2, .broken = true};
    reference_weights weights = {.row = number_row, .row_source = &source, .row_scale = number_scale};
    row_cache cache;
    double row[2];
    assert_true(row_cache_open(&cache, &model, &weights));
    assert_false(weights.row(weights.row_source, 0, 1, row));
    assert_true(isnan(weights.row_scale(weights.row_source, 0, 1)));
    source.broken = false;
    assert_true(weights.row(weights.row_source, 0, 1, row));
    assert_true(row[0] == value_of(0, 1, 0));
    row_cache_close(&cache);
}

static void without_scales_there_are_none(void **state)
{
    (void)state;
    const reference_model model = {.h = 1, .tau = 1, .d_out = 2};
    numbers source = {.d_out = 2};
    reference_weights weights = {.row = number_row, .row_source = &source};
    row_cache cache;
    assert_true(row_cache_open(&cache, &model, &weights));
    assert_null(weights.row_scale);
    row_cache_close(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_source),
        cmocka_unit_test(a_row_that_cannot_be_read_is_not_kept),
        cmocka_unit_test(without_scales_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
