/* Lists of rows of tables, summed over ranks; see ranks.h. */
#include "harness/train/ranks.h"

#include <stdlib.h>
#include <string.h>

/* The rows of tables that a rank has. */
typedef struct {
    const ranks_table *tables;
    uint32_t *row_numbers, *counts;
    float *row_gradients;
} lists;

static size_t bytes_of(const ranks_table *t, size_t rows)
{
    return rows * (sizeof(uint32_t) + t->columns * sizeof(float));
}

/* Bytes of the lists of tables first ... last - 1: their counts, then of each the row numbers and the gradients without padding. */
static size_t packed_bytes(const lists *l, size_t first, size_t last)
{
    size_t bytes = (last - first) * sizeof *l->counts;
    for (size_t i = first; i < last; ++i)
        bytes += bytes_of(&l->tables[i], l->counts[i]);
    return bytes;
}

/* Writes them; returns the end. */
static unsigned char *pack(const lists *l, size_t first, size_t last, unsigned char *to)
{
    memcpy(to, l->counts + first, (last - first) * sizeof *l->counts);
    to += (last - first) * sizeof *l->counts;
    for (size_t i = first; i < last; ++i) {
        const ranks_table *t = &l->tables[i];
        memcpy(to, l->row_numbers + t->state_at, l->counts[i] * sizeof *l->row_numbers);
        to += l->counts[i] * sizeof *l->row_numbers;
        for (size_t k = 0; k < l->counts[i]; ++k, to += t->columns * sizeof *l->row_gradients)
            memcpy(to, l->row_gradients + t->gradient_at + k * t->pitch, t->columns * sizeof *l->row_gradients);
    }
    return to;
}

/* Reads them back. */
static void unpack(const lists *l, size_t first, size_t last, const unsigned char *from)
{
    memcpy(l->counts + first, from, (last - first) * sizeof *l->counts);
    from += (last - first) * sizeof *l->counts;
    for (size_t i = first; i < last; ++i) {
        const ranks_table *t = &l->tables[i];
        memcpy(l->row_numbers + t->state_at, from, l->counts[i] * sizeof *l->row_numbers);
        from += l->counts[i] * sizeof *l->row_numbers;
        for (size_t k = 0; k < l->counts[i]; ++k, from += t->columns * sizeof *l->row_gradients)
            memcpy(l->row_gradients + t->gradient_at + k * t->pitch, from, t->columns * sizeof *l->row_gradients);
    }
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

/* Merges table number `index`, which is number `own` in what ranks sent: places[r] is the next row of rank r. */
static void merge(const lists *l, size_t index, size_t own, reader *readers, size_t *places, size_t count)
{
    const ranks_table *t = &l->tables[index];
    const size_t gradient_bytes = t->columns * sizeof *l->row_gradients;
    uint32_t made = 0;
    memset(places, 0, count * sizeof *places);
    for (;;) {
        uint32_t least = UINT32_MAX;
        for (size_t r = 0; r < count; ++r)
            if (places[r] < number_at(readers[r].counts + own * sizeof(uint32_t))) {
                const uint32_t row = number_at(readers[r].at + places[r] * sizeof row);
                least = row < least ? row : least;
            }
        if (least == UINT32_MAX || made == t->rows)
            break;
        bool first = true;
        for (size_t r = 0; r < count; ++r) {
            const uint32_t met = number_at(readers[r].counts + own * sizeof met);
            if (places[r] >= met || number_at(readers[r].at + places[r] * sizeof met) != least)
                continue;
            add_gradient(l->row_gradients + t->gradient_at + made * t->pitch, readers[r].at + met * sizeof met + places[r] * gradient_bytes,
                         t->columns, first);
            first = false;
            ++places[r];
        }
        l->row_numbers[t->state_at + made++] = least;
    }
    for (size_t r = 0; r < count; ++r)
        readers[r].at += bytes_of(t, number_at(readers[r].counts + own * sizeof(uint32_t)));
    l->counts[index] = made;
}

/* The first table of those that rank `rank` sums. */
static size_t first_of(const ranks *r, size_t tables, size_t rank)
{
    return tables * rank / r->count;
}

/* Sends every rank what it sums, and sums this rank's share. */
static bool sum_share(const ranks *r, const lists *l, size_t tables, size_t *sizes, size_t *places, reader *readers)
{
    const size_t first = first_of(r, tables, r->number), last = first_of(r, tables, r->number + 1);
    unsigned char *mine = malloc(packed_bytes(l, 0, tables) + r->count * sizeof *l->counts + 1), *to = mine;
    if (!mine)
        return false;
    for (size_t i = 0; i < r->count; ++i) {
        const size_t from = first_of(r, tables, i), end = first_of(r, tables, i + 1);
        to = pack(l, from, end, to);
        places[i] = packed_bytes(l, from, end);
    }
    unsigned char *all = r->trade(mine, places, sizes);
    free(mine);
    size_t at = 0;
    for (size_t i = 0; i < r->count; ++i) {
        readers[i] = (reader){all + at, all + at + (last - first) * sizeof *l->counts};
        at += sizes[i];
    }
    for (size_t i = first; i < last; ++i)
        merge(l, i, i - first, readers, places, r->count);
    free(all);
    return true;
}

/* Tells the others this rank's sums, and takes theirs. */
static bool share_sums(const ranks *r, const lists *l, size_t tables, size_t *sizes)
{
    const size_t first = first_of(r, tables, r->number), last = first_of(r, tables, r->number + 1);
    const size_t bytes = packed_bytes(l, first, last);
    unsigned char *mine = malloc(bytes + 1);
    if (!mine)
        return false;
    pack(l, first, last, mine);
    unsigned char *all = r->gather(mine, bytes, sizes);
    free(mine);
    size_t at = 0;
    for (size_t i = 0; i < r->count; ++i) {
        unpack(l, first_of(r, tables, i), first_of(r, tables, i + 1), all + at);
        at += sizes[i];
    }
    free(all);
    return true;
}

bool ranks_merge(const ranks *r, const ranks_table *tables, size_t count, uint32_t *row_numbers, uint32_t *counts, float *row_gradients)
{
    const lists l = {tables, row_numbers, counts, row_gradients};
    size_t *sizes = calloc(2 * r->count, sizeof *sizes);
    reader *readers = calloc(r->count, sizeof *readers);
    const bool good = sizes && readers && sum_share(r, &l, count, sizes, sizes + r->count, readers) && share_sums(r, &l, count, sizes);
    free(sizes);
    free(readers);
    return good;
}
