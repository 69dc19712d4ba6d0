/* Lists of rows of tables, summed over ranks; see ranks.h. */
#include "harness/train/ranks.h"

#include <stdlib.h>
#include <string.h>

/* The lists of this rank as bytes: the counts of all tables, then of each the row numbers and the gradients without padding. */
static unsigned char *packed(const ranks_table *tables, size_t count, const uint32_t *row_numbers, const uint32_t *counts,
                             const float *row_gradients, size_t *bytes)
{
    *bytes = count * sizeof *counts;
    for (size_t i = 0; i < count; ++i)
        *bytes += counts[i] * (sizeof *row_numbers + tables[i].columns * sizeof *row_gradients);
    unsigned char *all = malloc(*bytes + 1), *to = all;
    if (!all)
        return NULL;
    memcpy(to, counts, count * sizeof *counts);
    to += count * sizeof *counts;
    for (size_t i = 0; i < count; ++i) {
        const ranks_table *t = &tables[i];
        memcpy(to, row_numbers + t->state_at, counts[i] * sizeof *row_numbers);
        to += counts[i] * sizeof *row_numbers;
        for (size_t k = 0; k < counts[i]; ++k, to += t->columns * sizeof *row_gradients)
            memcpy(to, row_gradients + t->gradient_at + k * t->columns, t->columns * sizeof *row_gradients);
    }
    return all;
}

/* A rank's lists while they are merged. */
typedef struct {
    const unsigned char *counts, *at;
} reader;

static uint32_t number_at(const unsigned char *bytes)
{
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

/* Adds the gradient at `from`, or puts it down as the first. */
static void add_gradient(float *sum, const unsigned char *from, size_t columns, bool first)
{
    for (size_t c = 0; c < columns; ++c) {
        float value;
        memcpy(&value, from + c * sizeof value, sizeof value);
        sum[c] = first ? value : sum[c] + value;
    }
}

/* Merges one table: places[i] is the next row of rank i. */
static uint32_t merged(const ranks_table *t, size_t number, reader *readers, size_t *places, size_t ranks_count, uint32_t *row_numbers,
                       float *row_gradients)
{
    const size_t gradient_bytes = t->columns * sizeof *row_gradients;
    uint32_t made = 0;
    memset(places, 0, ranks_count * sizeof *places);
    for (;;) {
        uint32_t least = UINT32_MAX;
        for (size_t r = 0; r < ranks_count; ++r)
            if (places[r] < number_at(readers[r].counts + number * sizeof(uint32_t))) {
                const uint32_t row = number_at(readers[r].at + places[r] * sizeof row);
                least = row < least ? row : least;
            }
        if (least == UINT32_MAX || made == t->rows)
            break;
        bool first = true;
        for (size_t r = 0; r < ranks_count; ++r) {
            const uint32_t met = number_at(readers[r].counts + number * sizeof met);
            if (places[r] >= met || number_at(readers[r].at + places[r] * sizeof met) != least)
                continue;
            add_gradient(row_gradients + t->gradient_at + made * t->columns, readers[r].at + met * sizeof met + places[r] * gradient_bytes,
                         t->columns, first);
            first = false;
            ++places[r];
        }
        row_numbers[t->state_at + made++] = least;
    }
    for (size_t r = 0; r < ranks_count; ++r)
        readers[r].at += number_at(readers[r].counts + number * sizeof(uint32_t)) * (sizeof(uint32_t) + gradient_bytes);
    return made;
}

bool ranks_merge(const ranks *r, const ranks_table *tables, size_t count, uint32_t *row_numbers, uint32_t *counts, float *row_gradients)
{
    size_t bytes;
    unsigned char *mine = packed(tables, count, row_numbers, counts, row_gradients, &bytes);
    size_t *sizes = calloc(2 * r->count, sizeof *sizes);
    reader *readers = calloc(r->count, sizeof *readers);
    unsigned char *all = mine && sizes && readers ? r->gather(mine, bytes, sizes) : NULL;
    size_t at = 0;
    for (size_t i = 0; all && i < r->count; ++i) {
        readers[i] = (reader){all + at, all + at + count * sizeof *counts};
        at += sizes[i];
    }
    for (size_t i = 0; all && i < count; ++i)
        counts[i] = merged(&tables[i], i, readers, sizes + r->count, r->count, row_numbers, row_gradients);
    const bool good = all != NULL;
    free(mine);
    free(sizes);
    free(readers);
    free(all);
    return good;
}
