/* Shuffled windows of ids; see batches.h. */
#include "harness/train/batches.h"

#include "gen/weights/random.h"

#include <string.h>

/* 64 bits that depend on all three. */
static uint64_t mixed(uint64_t seed, uint64_t a, uint64_t b)
{
    random_state random = random_seed(seed);
    random.state ^= random_bits(&random) + a;
    random.state ^= random_bits(&random) + b;
    return random_bits(&random);
}

size_t batches_windows(const batches *b)
{
    const size_t full = b->count > 0 ? (b->count - 1) / b->length : 0;
    return full > 1 ? full - 1 : full; /* room for a start of its own */
}

/* A permutation of 0 ... count - 1 that depends on `key`: Feistel rounds on as many bits as count has, until the result is below count. */
static size_t permuted(uint64_t key, size_t value, size_t count)
{
    unsigned half = 1;
    while ((uint64_t)1 << (2 * half) < count)
        ++half;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = value >> half, right = value & mask;
        for (uint64_t round = 0; round < 4; ++round) {
            const uint64_t next = left ^ (mixed(key, round, right) & mask);
            left = right;
            right = next;
        }
        value = (size_t)(left << half | right);
    } while (value >= count);
    return value;
}

size_t batches_start(const batches *b, uint64_t index)
{
    const size_t windows = batches_windows(b);
    const uint64_t pass = index / windows, key = mixed(b->seed, pass, 0);
    const size_t spare = b->count - 1 - windows * b->length + 1;
    const size_t shift = (size_t)(mixed(b->seed, pass, 1) % (spare < b->length ? spare : b->length));
    return shift + b->length * permuted(key, (size_t)(index % windows), windows);
}

void batches_next(const batches *b, uint64_t index, int32_t *ids, int32_t *targets)
{
    const int32_t *window = b->ids + batches_start(b, index);
    memcpy(ids, window, b->length * sizeof *ids);
    memcpy(targets, window + 1, b->length * sizeof *targets);
}

void batches_masked(const batches *b, const batches_masks *masks, uint64_t index, int32_t *ids, int32_t *targets)
{
    const int32_t *window = b->ids + batches_start(b, index);
    random_state random = random_seed(mixed(b->seed, index, 2));
    for (size_t i = 0; i < b->length; ++i) {
        const double found = random_uniform(&random), how = random_uniform(&random);
        const int32_t other = (int32_t)(random_bits(&random) % masks->vocab);
        const int replaced = found < masks->share;
        targets[i] = replaced ? window[i] : -1;
        ids[i] = !replaced || how >= 0.9 ? window[i] : how < 0.8 ? masks->mask : other;
    }
}
