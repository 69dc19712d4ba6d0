/* See row_cache.h. A row has one slot only: whichever row was there before is forgotten. */
#include "harness/reference/row_cache.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const size_t most_bytes = (size_t)64 << 20;

/* Where the row is, read now if it was not there: its slot; SIZE_MAX when it cannot be read. */
static size_t slot_of(row_cache *cache, size_t table, size_t code)
{
    const size_t number = table * cache->codes + code, slot = number % cache->slots;
    if (cache->kept[slot] == number + 1)
        return slot;
    const reference_weights *source = &cache->source;
    cache->kept[slot] = 0;
    if (!source->row(source->row_source, table, code, cache->rows + slot * cache->d_out))
        return SIZE_MAX;
    if (source->row_scale)
        cache->scale[slot] = source->row_scale(source->row_source, table, code);
    cache->kept[slot] = number + 1;
    return slot;
}

static bool cached_row(void *source, size_t table, size_t code, double *row)
{
    row_cache *cache = source;
    const size_t slot = slot_of(cache, table, code);
    if (slot == SIZE_MAX)
        return false;
    memcpy(row, cache->rows + slot * cache->d_out, cache->d_out * sizeof *row);
    return true;
}

static double cached_scale(void *source, size_t table, size_t code)
{
    row_cache *cache = source;
    const size_t slot = slot_of(cache, table, code);
    return slot == SIZE_MAX ? NAN : cache->scale[slot];
}

bool row_cache_open(row_cache *cache, const reference_model *model, reference_weights *weights)
{
    const size_t rows = model->h << model->tau, most = most_bytes / sizeof(double) / model->d_out + 1;
    *cache = (row_cache){.source = *weights, .codes = (size_t)1 << model->tau, .d_out = model->d_out, .slots = rows < most ? rows : most};
    cache->kept = calloc(cache->slots, sizeof *cache->kept);
    cache->scale = malloc(cache->slots * sizeof *cache->scale);
    cache->rows = malloc(cache->slots * cache->d_out * sizeof *cache->rows);
    if (!cache->kept || !cache->scale || !cache->rows)
        return false;
    weights->row = cached_row;
    weights->row_source = cache;
    weights->row_scale = weights->row_scale ? cached_scale : NULL;
    return true;
}

void row_cache_close(row_cache *cache)
{
    free(cache->kept);
    free(cache->scale);
    free(cache->rows);
}
