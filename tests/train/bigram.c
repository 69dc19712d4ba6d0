/* Training code by hand with the interface that lookupc emits: logits of the next id are a row of a matrix and a row of tables, both chosen
   by the id before. Parts share the rows; all results are the same for any number of parts. */
#include "harness/train/abi.h"

#include <math.h>

enum { VOCAB = 16, TABLES = VOCAB * VOCAB };

size_t bigram_workspace(size_t sequences, size_t length, size_t parts)
{
    (void)sequences, (void)length, (void)parts;
    return 64;
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
        float square = 0;
        for (size_t k = 0; k < VOCAB; ++k) {
            t->gradients[row * VOCAB + k] += sums[row * VOCAB + k];
            square += sums[row * VOCAB + k] * sums[row * VOCAB + k] / VOCAB;
        }
        t->table_state[row] += square;
        t->row_uses[row] += uses[row];
        for (size_t k = 0; uses[row] && k < VOCAB; ++k)
            tables[row * VOCAB + k] -= t->table_rate * sums[row * VOCAB + k] / (sqrtf(t->table_state[row]) + t->table_epsilon);
    }
    t->barrier(t->context);
    return nats;
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
