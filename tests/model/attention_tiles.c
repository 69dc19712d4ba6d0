/* Attention by tiles gives what attention by vectors gives, and this what it gives for a row alone: to the bit where
   keys, values and weights are integers (SCALED), nearly in bf16. `BY_VECTORS` and `BY_TILES` are functions of one
   emitted bundle, of one causal head; RUNTIME is its header of types. */
#include RUNTIME

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POSITIONS = 160, QUERIES = 16, KEYS = 32, WORDS_OF_VALUES = POSITIONS / PER_WORD };

typedef void attention(const tiles_cache *, const tiles_span *, const tiles_attention *);
attention BY_VECTORS, BY_TILES;
size_t tiles_used;

static uint32_t query[QUERIES * QUERY_STEP], key[POSITIONS * KEY_STEP], value[WORDS_OF_VALUES * PITCH], weight[QUERIES * WEIGHT_STEP];
static float score[QUERIES * KEYS], total[QUERIES * 16], by_vectors[QUERIES * PITCH], by_tiles[QUERIES * PITCH], alone[QUERIES * PITCH];
static float key_unit[POSITIONS], value_unit[POSITIONS];

/* Bytes, or two numbers of bf16 below 1. */
static uint32_t word(void)
{
    uint32_t all = 0;
    for (int k = 0; k < PER_WORD; ++k) {
#ifdef SCALED
        all |= (uint32_t)(rand() % 255 + 1) << 8 * k;
#else
        const float number = (float)(rand() % 2001 - 1000) / 1000.0f;
        uint32_t bits;
        memcpy(&bits, &number, 4);
        all |= bits >> 16 << 16 * k;
#endif
    }
    return all;
}

/* Words of queries, what sums start from, and the unit. */
static void make_query(uint32_t *row)
{
    uint32_t start = 0;
    const float unit = 0.001f;
    for (int k = 0; k < KEY_STEP; ++k) {
        row[k] = word();
        for (int byte = 0; byte < 32; byte += 8)
            start -= 128u * (uint32_t)(int8_t)(uint8_t)(row[k] >> byte);
    }
    row[KEY_STEP] = start;
    memcpy(row + KEY_STEP + 1, &unit, 4);
}

/* Keys and values of positions before `end`; what lies behind was never written, which may be NaN. */
static void fill_cache(size_t end)
{
    for (size_t tile = 0; tile < POSITIONS / KEYS; ++tile)
        for (size_t k = 0; k < KEY_STEP * KEYS; ++k)
            key[tile * KEY_STEP * KEYS + k] = tile * KEYS + k % KEYS < end ? word() : 0xffffffffu;
    for (size_t k = 0; k < sizeof value / sizeof *value; ++k) {
        const size_t position = k / PITCH * PER_WORD, own = position < end ? end - position : 0;
        const uint32_t behind = own >= PER_WORD ? 0 : 0xffffffffu << own * 32 / PER_WORD;
        value[k] = word() | behind;
    }
}

/* Attention of `queries` queries from number `number` on, the first at position `first`. */
static void attend(attention kernel, size_t number, size_t first, size_t queries, float *to)
{
    const tiles_cache cache = {
        .keys = key,
        .values = value,
#ifdef SCALED
        .key_scales = key_unit,
        .value_scales = value_unit,
#endif
    };
    const tiles_span span = {.count = queries, .first = first};
    const tiles_attention a = {
        .rounded_queries = query + number * QUERY_STEP,
        .rounded_weights = weight,
        .sums = to,
        .scores = score,
        .totals = total,
    };
    kernel(&cache, &span, &a);
}

int main(void)
{
#ifdef SCALED
    const float tolerance = 0.0f;
#else
    const float tolerance = 1e-5f;
#endif
    for (int k = 0; k < POSITIONS; ++k)
        key_unit[k] = 0.01f + 0.0001f * (float)k, value_unit[k] = 0.02f - 0.0001f * (float)k;
    for (size_t k = 0; k < QUERIES; ++k)
        make_query(query + k * QUERY_STEP);
    (void)key_unit, (void)value_unit;
    for (size_t first = 0; first + QUERIES <= POSITIONS; first += 9)
        for (size_t queries = QUERIES - 1; queries <= QUERIES; ++queries) {
            fill_cache(first + queries);
            attend(BY_VECTORS, 0, first, queries, by_vectors);
            for (size_t q = 0; q < queries; ++q)
                attend(BY_VECTORS, q, first + q, 1, alone + q * PITCH);
            attend(BY_TILES, 0, first, queries, by_tiles);
            for (size_t i = 0; i < queries * PITCH; ++i) {
                if (fabsf(by_vectors[i] - by_tiles[i]) <= tolerance && fabsf(by_vectors[i] - alone[i]) <= tolerance)
                    continue;
                printf("%zu queries from %zu on: element %zu: %g, of a row alone %g, instead of %g\n", queries, first, i, by_tiles[i],
                       alone[i], by_vectors[i]);
                return 1;
            }
        }
    return 0;
}
