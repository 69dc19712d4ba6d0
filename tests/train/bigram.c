/* Training code by hand with the interface that lookupc emits: logits of the next id are a row of a matrix and a row of tables, both chosen
   by the id before. Parts share the rows; all results are the same for any number of parts. */
#include "harness/train/abi.h"

#include <math.h>

enum { VOCAB = 16, TABLES = VOCAB * VOCAB, TABLE_ROWS = VOCAB / 2 };

size_t bigram_workspace(size_t sequences, size_t length, size_t parts)
{
    (void)sequences, (void)length, (void)parts;
    return 64;
}

/* Lazy Adam. */
static void update_adam(const train_call *t, size_t row, const float *gradient)
{
    float *weights = t->parameters + TABLES + row * VOCAB, *first = t->table_state + 2 * row * VOCAB, *second = first + VOCAB;
    for (size_t k = 0; k < VOCAB; ++k) {
        first[k] += (1 - t->beta1) * (gradient[k] - first[k]);
        second[k] += (1 - t->beta2) * (gradient[k] * gradient[k] - second[k]);
        weights[k] -= t->table_rate * t->correction1 * first[k] / sqrtf(t->correction2 * second[k] + t->table_epsilon);
    }
}

/* Row-wise Adagrad. */
static void update_adagrad(const train_call *t, size_t row, const float *gradient)
{
    float square = 0, *weights = t->parameters + TABLES + row * VOCAB;
    for (size_t k = 0; k < VOCAB; ++k)
        square += gradient[k] * gradient[k] / VOCAB;
    t->table_state[row] += square;
    for (size_t k = 0; k < VOCAB; ++k)
        weights[k] -= t->table_rate * gradient[k] / (sqrtf(t->table_state[row]) + t->table_epsilon);
}

static void update(const train_call *t, size_t row, const float *gradient)
{
    if (t->adam)
        update_adam(t, row, gradient);
    else
        update_adagrad(t, row, gradient);
}

/* The rows that were met, table by table. */
static void list_rows(const train_call *t, const float *sums, const unsigned *uses)
{
    for (size_t table = 0; table < VOCAB / TABLE_ROWS; ++table) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < TABLE_ROWS; ++i) {
            const size_t row = table * TABLE_ROWS + i, place = table * TABLE_ROWS + count;
            if (uses[row] == 0)
                continue;
            for (size_t k = 0; k < VOCAB; ++k)
                t->row_gradients[place * VOCAB + k] = sums[row * VOCAB + k];
            t->rows[place] = (uint32_t)row;
            ++count;
        }
        t->row_counts[table] = count;
    }
}

static double pass(const train_call *t, const int32_t *ids, const int32_t *targets, size_t count, int trains)
{
    double nats = 0;
    float *tables = t->parameters + TABLES;
    float sums[TABLES] = {0};
    unsigned uses[VOCAB] = {0};
    for (size_t i = 0; i < count; ++i) {
        if (targets[i] < 0)
            continue;
        const float *a = t->parameters + ids[i] * VOCAB, *b = tables + ids[i] * VOCAB;
        double all = 0;
        for (int k = 0; k < VOCAB; ++k)
            all += exp((double)(a[k] + b[k]));
        nats += log(all) - (double)(a[targets[i]] + b[targets[i]]);
        for (int k = 0; trains && k < VOCAB; ++k)
            sums[ids[i] * VOCAB + k] += t->gradient_scale * (float)(exp((double)(a[k] + b[k])) / all - (k == targets[i]));
        ++uses[ids[i]];
    }
    t->barrier(t->context); /* nobody reads the tables any more */
    for (size_t row = t->part; trains && row < VOCAB; row += t->parts) {
        for (size_t k = 0; k < VOCAB; ++k)
            t->gradients[row * VOCAB + k] += sums[row * VOCAB + k];
        t->row_uses[row] += uses[row];
        if (uses[row] && !t->rows)
            update(t, row, sums + row * VOCAB);
    }
    if (trains && t->rows && t->part == 0)
        list_rows(t, sums, uses);
    t->barrier(t->context);
    return nats;
}

/* As the step updates the rows that are listed. */
void bigram_apply(const train_call *t)
{
    for (size_t table = t->part; table < VOCAB / TABLE_ROWS; table += t->parts)
        for (size_t i = 0; i < t->row_counts[table]; ++i)
            update(t, t->rows[table * TABLE_ROWS + i], t->row_gradients + (table * TABLE_ROWS + i) * VOCAB);
}

double bigram_step(const train_call *t, const int32_t *ids, const int32_t *targets, size_t sequences, size_t length, void *workspace)
{
    (void)workspace;
    return pass(t, ids, targets, sequences * length, 1);
}

double bigram_loss(const train_call *t, const int32_t *ids, const int32_t *targets, size_t sequences, size_t length, void *workspace)
{
    (void)workspace;
    return pass(t, ids, targets, sequences * length, 0);
}

static _Thread_local int flushes;
static _Thread_local int wrong; /* a call began where the last one had not been ended */

int bigram_flush_denormals(int state)
{
    const int before = flushes;
    wrong |= before && state;
    flushes = state;
    return before;
}

/* The same, where this thread takes denormal numbers for zeros; else no number. */
double bigram_step_of_zeros(const train_call *t, const int32_t *ids, const int32_t *targets, size_t sequences, size_t length,
                            void *workspace)
{
    const double nats = bigram_step(t, ids, targets, sequences, length, workspace);
    return flushes == 1 && !wrong ? nats : (double)NAN;
}
