/* Other processes that train the same model on other sequences, and what all of them sum. Without any there is one rank. */
#ifndef LOOKUPC_TRAIN_RANKS_H
#define LOOKUPC_TRAIN_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the module lookupc-mpi.so beside lookupc gives: harness/train/mpi/mpi.c. A call returns when all ranks have made it; a rank that
   dies ends the others, with one line. All ranks get the same bits. */
typedef struct {
    size_t number, count;
    /* values[count] of all ranks, summed */
    void (*sum)(float *values, size_t count);
    void (*sum_doubles)(double *values, size_t count);
    /* Sends sizes_to[i] bytes to each rank i, which lie one behind the other. Returns what all ranks sent to this one, by rank, from
       malloc, and how much it is. */
    unsigned char *(*trade)(const void *mine, const size_t *sizes_to, size_t *sizes_from);
    /* The bytes of all ranks one behind the other, from malloc, and in sizes[ranks] how many each has. */
    unsigned char *(*gather)(const void *mine, size_t bytes, size_t *sizes);
    /* What the line of a rank that notices that another has died says last: where to go on from. */
    void (*words)(const char *text);
    /* Says that there is no memory, and ends the processes of all ranks, at once. So does a process that exits without having left. */
    void (*give_up)(void);
    /* Waits for all ranks. Then each may end, in whatever way; only leave may be called. */
    void (*part)(void);
    /* Waits for all ranks; no call may follow. */
    void (*leave)(void);
} ranks;

/* The name of the function of that module: joins the ranks that mpirun started. */
#define RANKS_JOIN "lookupc_join_ranks"
typedef const ranks *ranks_join(void);

/* Rows of tables that a step met, and the sums of their gradients: what train_call has of them. Of table number i, whose rows are
   state_at ... state_at + rows - 1 among those of all tables, counts[i] were met. */
typedef struct {
    size_t rows, columns, pitch;
    size_t state_at;    /* of rows: row_numbers[state_at + k] is the k-th row that was met, ascending */
    size_t gradient_at; /* row_gradients[gradient_at + k * pitch ...] its gradient */
} ranks_table;

/* Puts the rows of all ranks into those of this one: each row once, ascending, its gradients summed in the order of ranks. Each rank sums a
   share of the tables and tells the others, so that what a rank sends and receives hardly grows with their number. Returns false if there
   is no memory. */
bool ranks_merge(const ranks *r, const ranks_table *tables, size_t count, uint32_t *row_numbers, uint32_t *counts, float *row_gradients);

#endif
