/* LU with partial pivoting in float64, its solves and its condition number; every operation in a fixed order, so that equal input gives
   equal bytes on every machine. Source: Golub and Van Loan, Matrix Computations, 3.4; Higham, Accuracy and Stability, 15.3 (condition). */
#ifndef LOOKUPC_WEIGHTS_LU_H
#define LOOKUPC_WEIGHTS_LU_H

#include "gen/host/progress.h"

#include <stdbool.h>
#include <stddef.h>

/* Factors of a matrix A[n][n]. */
typedef struct {
    size_t n;
    double *factors; /* [n][n]: L below the diagonal, whose own diagonal is 1, and U */
    size_t *swaps;   /* [n]: in step j, rows j and swaps[j] of A were exchanged */
    double norm;     /* the 1-norm of A: its largest sum of absolute values of a column */
} lu;

typedef enum { LU_DONE, LU_SINGULAR, LU_INTERRUPTED } lu_result;

/* Factors `matrix`, A[n][n], in place; a->factors points to it afterwards. swaps[n] is the caller's. The pivot of a column is its largest
   element, the first one of several. LU_SINGULAR if a pivot is 0: *column then says which. Reports about n^3 2 / 3 of work. */
lu_result lu_factor(lu *a, double *matrix, size_t *swaps, size_t n, size_t *column, progress *p);

/* rows[count][n] <- X with X A = rows. */
void lu_solve_rows(const lu *a, double *rows, size_t count);

/* vector[n] <- x with A x = vector. */
void lu_solve_column(const lu *a, double *vector);

/* An estimate from below of the condition number |A| |A^-1| in the 1-norm, seldom off by more than a factor of 3; work[2n]. */
double lu_condition(const lu *a, double *work);

#endif
