/* The products and solves of fuse: bit for bit those of plain loops, and close to what LAPACK computes. */
#include "gen/weights/lu.h"
#include "gen/weights/matmul.h"
#include "gen/weights/random.h"

/* cmocka.h needs the first four */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LAPACK, column by column. */
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
void dgetrs_(const char *transposed, const int *n, const int *count, const double *a, const int *lda, const int *pivots, double *b,
             const int *ldb, int *info);
void dgecon_(const char *norm, const int *n, const double *a, const int *lda, const double *size, double *reciprocal, double *work,
             int *integers, int *info);

static double *filled(random_state *random, size_t count)
{
    double *values = malloc(count * sizeof *values);
    float *singles = malloc(count * sizeof *singles);
    assert_true(values && singles);
    random_fill(random, singles, count, 0.0, 1.0);
    for (size_t i = 0; i < count; ++i)
        values[i] = (double)singles[i];
    free(singles);
    return values;
}

static double *copy_of(const double *values, size_t count)
{
    double *copy = malloc(count * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, values, count * sizeof *copy);
    return copy;
}

static double *transposed(const double *a, size_t n)
{
    double *t = malloc(n * n * sizeof *t);
    assert_non_null(t);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            t[j * n + i] = a[i * n + j];
    return t;
}

static double largest_difference(const double *a, const double *b, size_t count)
{
    double largest = 0.0;
    for (size_t i = 0; i < count; ++i)
        largest = fmax(largest, fabs(a[i] - b[i]));
    return largest;
}

static void products_are_those_of_plain_loops(void **state)
{
    (void)state;
    random_state random = random_seed(3);
    static const size_t sizes[][3] = {{1, 1, 1},      {6, 16, 8},    {7, 17, 3},   {193, 33, 257},
                                      {13, 100, 600}, {200, 1, 300}, {1, 50, 256}, {5, 5, 0}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        for (int form = 0; form < 4; ++form) { /* a and b as they are or transposed */
            const size_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2], ldc = n + 3;
            const double sign = form % 2 == 0 ? 1.0 : -1.0;
            double *a = filled(&random, m * k + 1), *b = filled(&random, k * n + 1), *c = filled(&random, m * ldc);
            double *expected = copy_of(c, m * ldc);
            const matmul_matrix at = form & 1 ? (matmul_matrix){a, 1, m} : (matmul_matrix){a, k, 1};
            const matmul_matrix bt = form & 2 ? (matmul_matrix){b, 1, k} : (matmul_matrix){b, n, 1};
            for (size_t i = 0; i < m; ++i)
                for (size_t j = 0; j < n; ++j)
                    for (size_t l = 0; l < k; ++l)
                        expected[i * ldc + j] += sign * a[i * at.row + l * at.column] * b[l * bt.row + j * bt.column];
            double *given = copy_of(c, m * ldc);
            matmul_add(sign, (matmul_sizes){m, n, k}, at, bt, c, ldc);
            assert_memory_equal(c, expected, m * ldc * sizeof *c);
            for (size_t lanes = 2; lanes <= 8; lanes *= 2) {
                memcpy(c, given, m * ldc * sizeof *c);
                matmul_add_narrow(lanes, sign, (matmul_sizes){m, n, k}, at, bt, c, ldc);
                assert_memory_equal(c, expected, m * ldc * sizeof *c);
            }
            free(given);
            free(a);
            free(b);
            free(c);
            free(expected);
        }
    }
}

/* Factors a copy of the matrix; the caller frees a->factors and a->swaps. */
static lu_result factored(lu *a, const double *matrix, size_t n, size_t *column)
{
    size_t *swaps = malloc(n * sizeof *swaps);
    assert_non_null(swaps);
    return lu_factor(a, copy_of(matrix, n * n), swaps, n, column, NULL);
}

static void release(lu *a)
{
    free(a->factors);
    free(a->swaps);
}

/* Checks everything about one matrix against LAPACK; `tolerance` is relative. */
static void check_against_lapack(random_state *random, const double *matrix, size_t n, double tolerance)
{
    lu a;
    size_t column;
    assert_int_equal(factored(&a, matrix, n, &column), LU_DONE);
    const int order = (int)n, count = 5;
    int info, *pivots = malloc(n * sizeof *pivots), *integers = malloc(n * sizeof *integers);
    double *by_columns = transposed(matrix, n), *work = malloc(4 * n * sizeof *work), reciprocal;
    assert_true(pivots && integers && work);
    dgetrf_(&order, &order, by_columns, &order, pivots, &info);
    assert_int_equal(info, 0);
    double *factors = transposed(by_columns, n), largest = 0.0;
    for (size_t i = 0; i < n; ++i) {
        assert_int_equal(a.swaps[i], pivots[i] - 1);
        for (size_t j = 0; j < n; ++j)
            largest = fmax(largest, fabs(factors[i * n + j]));
    }
    assert_true(largest_difference(a.factors, factors, n * n) <= tolerance * largest);

    /* x A = rows is A^T x^T = rows^T; LAPACK's columns are our rows */
    double *rows = filled(random, 5 * n), *expected = copy_of(rows, 5 * n), *column_rows = copy_of(rows, 5 * n);
    dgetrs_("T", &order, &count, by_columns, &order, pivots, expected, &order, &info);
    lu_solve_rows(&a, rows, 5);
    double size = 0.0;
    for (size_t i = 0; i < 5 * n; ++i)
        size = fmax(size, fabs(expected[i]));
    assert_true(largest_difference(rows, expected, 5 * n) <= tolerance * size);
    memcpy(expected, column_rows, 5 * n * sizeof *expected);
    dgetrs_("N", &order, &count, by_columns, &order, pivots, expected, &order, &info);
    size = 0.0;
    for (size_t i = 0; i < n; ++i)
        size = fmax(size, fabs(expected[i]));
    lu_solve_column(&a, column_rows);
    assert_true(largest_difference(column_rows, expected, n) <= tolerance * size);

    double norm = 0.0;
    for (size_t j = 0; j < n; ++j) {
        double sum = 0.0;
        for (size_t i = 0; i < n; ++i)
            sum += fabs(matrix[i * n + j]);
        norm = fmax(norm, sum);
    }
    assert_true(fabs(a.norm - norm) <= 1e-14 * norm);
    dgecon_("1", &order, by_columns, &order, &norm, &reciprocal, work, integers, &info);
    const double ratio = lu_condition(&a, work) * reciprocal;
    assert_true(ratio > 1.0 / 3.0 && ratio < 3.0);

    release(&a);
    free(by_columns);
    free(factors);
    free(pivots);
    free(integers);
    free(work);
    free(rows);
    free(expected);
    free(column_rows);
}

static void agrees_with_lapack(void **state)
{
    (void)state;
    random_state random = random_seed(4);
    static const size_t sizes[] = {1, 2, 5, 63, 64, 65, 128, 200};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        double *matrix = filled(&random, sizes[s] * sizes[s]);
        check_against_lapack(&random, matrix, sizes[s], 1e-10);
        free(matrix);
    }
    double hilbert[6 * 6]; /* condition number 2.9e7 */
    for (size_t i = 0; i < 36; ++i)
        hilbert[i] = 1.0 / (double)(i / 6 + i % 6 + 1);
    check_against_lapack(&random, hilbert, 6, 1e-8);
    lu a;
    size_t column;
    double work[12];
    assert_int_equal(factored(&a, hilbert, 6, &column), LU_DONE);
    assert_true(fabs(lu_condition(&a, work) - 2.907e7) < 1e4);
    release(&a);
}

static void finds_singular_matrices(void **state)
{
    (void)state;
    enum { N = 70 };
    lu a;
    size_t column = 0;
    double matrix[N * N] = {0};
    assert_int_equal(factored(&a, matrix, N, &column), LU_SINGULAR);
    assert_int_equal(column, 0);
    release(&a);
    for (size_t i = 0; i < N; ++i)
        matrix[i * N + (i + 1) % N] = (double)(i + 1); /* a permutation: pivots are found in other rows */
    assert_int_equal(factored(&a, matrix, N, &column), LU_DONE);
    release(&a);
    memcpy(matrix + 66 * N, matrix + 3 * N, N * sizeof *matrix); /* two equal rows; no row has element 67 any more */
    assert_int_equal(factored(&a, matrix, N, &column), LU_SINGULAR);
    assert_int_equal(column, 67);
    release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_plain_loops),
        cmocka_unit_test(agrees_with_lapack),
        cmocka_unit_test(finds_singular_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
