/* LU with partial pivoting in float64; see lu.h. Compiled with -ffp-contract=off. */
#include "gen/weights/lu.h"

#include "gen/weights/matmul.h"

#include <assert.h>
#include <math.h>

enum { BLOCK = 64 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void swap_rows(double *restrict a, double *restrict b, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        const double kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

/* row[n] -= factor * other[n] */
static void subtract(double *restrict row, double factor, const double *restrict other, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        row[i] -= factor * other[i];
}

static double column_norm(const double *matrix, size_t n, double *sums)
{
    double largest = 0.0;
    for (size_t j = 0; j < n; ++j)
        sums[j] = 0.0;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            sums[j] += fabs(matrix[i * n + j]);
    for (size_t j = 0; j < n; ++j)
        largest = fmax(largest, sums[j]);
    return largest;
}

/* Factors columns first ... end - 1, from row `first` down; rows are exchanged whole. */
static bool factor_panel(lu *a, size_t first, size_t end, size_t *column)
{
    const size_t n = a->n;
    double *m = a->factors;
    for (size_t j = first; j < end; ++j) {
        size_t pivot = j;
        for (size_t i = j + 1; i < n; ++i)
            if (fabs(m[i * n + j]) > fabs(m[pivot * n + j]))
                pivot = i;
        a->swaps[j] = pivot;
        if (!(fabs(m[pivot * n + j]) > 0.0)) {
            *column = j;
            return false;
        }
        if (pivot != j)
            swap_rows(m + j * n, m + pivot * n, n);
        for (size_t i = j + 1; i < n; ++i) {
            m[i * n + j] /= m[j * n + j];
            subtract(m + i * n + j + 1, m[i * n + j], m + j * n + j + 1, end - j - 1);
        }
    }
    return true;
}

lu_result lu_factor(lu *a, double *matrix, size_t *swaps, size_t n, size_t *column, progress *p)
{
    *a = (lu){.n = n, .factors = matrix, .swaps = swaps};
    static_assert(sizeof(double) == sizeof(size_t), "swaps hold sums first");
    a->norm = column_norm(matrix, n, (double *)(void *)swaps);
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t end = first + least(BLOCK, n - first), right = n - end;
        if (!factor_panel(a, first, end, column))
            return LU_SINGULAR;
        for (size_t i = first + 1; i < end; ++i)
            for (size_t k = first; k < i; ++k)
                subtract(matrix + i * n + end, matrix[i * n + k], matrix + k * n + end, right);
        matmul_add(-1.0, (matmul_sizes){right, right, end - first}, (matmul_matrix){matrix + end * n + first, n, 1},
                   (matmul_matrix){matrix + first * n + end, n, 1}, matrix + end * n + end, n);
        if (!progress_add(p, 2.0 * (double)(end - first) * (double)right * (double)right))
            return LU_INTERRUPTED;
    }
    return LU_DONE;
}

/* rows <- W with W U = rows. */
static void solve_upper(const lu *a, double *rows, size_t count)
{
    const size_t n = a->n;
    const double *u = a->factors;
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t end = first + least(BLOCK, n - first);
        matmul_add(-1.0, (matmul_sizes){count, end - first, first}, (matmul_matrix){rows, n, 1}, (matmul_matrix){u + first, n, 1},
                   rows + first, n);
        for (size_t row = 0; row < count; ++row) {
            double *x = rows + row * n;
            for (size_t k = first; k < end; ++k) {
                x[k] /= u[k * n + k];
                subtract(x + k + 1, x[k], u + k * n + k + 1, end - k - 1);
            }
        }
    }
}

/* rows <- Y with Y L = rows. */
static void solve_lower(const lu *a, double *rows, size_t count)
{
    const size_t n = a->n;
    const double *l = a->factors;
    for (size_t block = (n + BLOCK - 1) / BLOCK; block-- > 0;) {
        const size_t first = block * BLOCK, end = first + least(BLOCK, n - first);
        matmul_add(-1.0, (matmul_sizes){count, end - first, n - end}, (matmul_matrix){rows + end, n, 1},
                   (matmul_matrix){l + end * n + first, n, 1}, rows + first, n);
        for (size_t row = 0; row < count; ++row) {
            double *y = rows + row * n;
            for (size_t k = end; k-- > first;)
                subtract(y + first, y[k], l + k * n + first, k - first);
        }
    }
}

void lu_solve_rows(const lu *a, double *rows, size_t count)
{
    const size_t n = a->n;
    solve_upper(a, rows, count);
    solve_lower(a, rows, count);
    for (size_t row = 0; row < count; ++row) {
        for (size_t j = n; j-- > 0;) {
            const double kept = rows[row * n + j];
            rows[row * n + j] = rows[row * n + a->swaps[j]];
            rows[row * n + a->swaps[j]] = kept;
        }
    }
}

void lu_solve_column(const lu *a, double *vector)
{
    const size_t n = a->n;
    const double *m = a->factors;
    for (size_t j = 0; j < n; ++j) {
        const double kept = vector[j];
        vector[j] = vector[a->swaps[j]];
        vector[a->swaps[j]] = kept;
    }
    for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < i; ++k)
            vector[i] -= m[i * n + k] * vector[k];
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; ++k)
            vector[i] -= m[i * n + k] * vector[k];
        vector[i] /= m[i * n + i];
    }
}

static double sum_of_sizes(const double *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; ++i)
        sum += fabs(x[i]);
    return sum;
}

/* Higham's algorithm 15.1 for the 1-norm of A^-1, with the alternating vector that catches what it misses. */
double lu_condition(const lu *a, double *work)
{
    const size_t n = a->n;
    double *x = work, *z = work + n, best = 0.0;
    size_t chosen = n;
    for (size_t i = 0; i < n; ++i)
        x[i] = 1.0 / (double)n;
    for (int step = 0; step < 5; ++step) {
        lu_solve_column(a, x);
        const double norm = sum_of_sizes(x, n);
        if (step > 0 && norm <= best)
            break;
        best = norm;
        for (size_t i = 0; i < n; ++i)
            z[i] = x[i] >= 0.0 ? 1.0 : -1.0;
        lu_solve_rows(a, z, 1);
        size_t largest = 0;
        for (size_t i = 1; i < n; ++i)
            if (fabs(z[i]) > fabs(z[largest]))
                largest = i;
        if (largest == chosen)
            break;
        chosen = largest;
        for (size_t i = 0; i < n; ++i)
            x[i] = i == chosen ? 1.0 : 0.0;
    }
    for (size_t i = 0; i < n; ++i)
        x[i] = (i % 2 == 0 ? 1.0 : -1.0) * (1.0 + (double)i / (double)(n > 1 ? n - 1 : 1));
    lu_solve_column(a, x);
    return a->norm * fmax(best, 2.0 * sum_of_sizes(x, n) / (3.0 * (double)n));
}
