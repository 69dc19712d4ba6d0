/* Loads compiled variants of the emitted FFN and makes the calls that are timed. */
#include "harness/measure/timed_variant.h"

#include "harness/base/memory.h"

bool measure_variant_open(measure_variant *variant, const variant_description *job, const char *blob_path, const files_mapping *blob,
                          char *error, size_t error_size)
{
    *variant = (measure_variant){.job = job};
    if (!variant_load(&variant->bound, job, blob_path, blob, error, error_size)) {
        measure_variant_close(variant);
        return false;
    }
    return true;
}

bool measure_variant_open_beside(measure_variant *variant, const variant_description *job, const measure_variant *first, char *error,
                                 size_t error_size)
{
    *variant = (measure_variant){.job = job, .shares = true};
    if (!variant_open(&variant->bound.functions, job, error, error_size)) {
        *variant = (measure_variant){.job = NULL};
        return false;
    }
    variant->bound.weights = first->bound.weights;
    variant->bound.scratch = first->bound.scratch;
    return true;
}

bool measure_variant_take_apart(measure_variant *variant, const measure_pool *pool, char *error, size_t error_size)
{
    const variant_description *job = variant->job;
    const size_t slots = variant_slots(job), entries = variant_places(job, pool->tokens), chunk_entries = job->chunk * slots;
    variant->pool = pool;
    variant->code = aligned_memory(entries * sizeof(*variant->code));
    variant->score = aligned_memory(entries * sizeof(*variant->score));
    variant->token_code = aligned_memory(entries * sizeof(*variant->code));
    variant->token_score = aligned_memory(entries * sizeof(*variant->score));
    variant->chunk_code = aligned_memory(chunk_entries * sizeof(*variant->code));
    variant->chunk_score = aligned_memory(chunk_entries * sizeof(*variant->score));
    if (!variant->code || !variant->score || !variant->token_code || !variant->token_score || !variant->chunk_code ||
        !variant->chunk_score) {
        return files_error(error, error_size, "%s: out of memory", job->library);
    }
    const variant_bound *bound = &variant->bound;
    for (size_t first = 0; first < pool->tokens; first += job->chunk) {
        bound->functions.project(bound->weights, pool->x + first * pool->d, smaller(job->chunk, pool->tokens - first),
                                 variant->code + first * slots, variant->score + first * slots, bound->scratch);
    }
    for (size_t token = 0; token < pool->tokens; ++token) {
        for (size_t slot = 0; slot < slots; ++slot) {
            const size_t place = variant_place(job, token, slot);
            variant->token_code[token * slots + slot] = variant->code[place];
            variant->token_score[token * slots + slot] = variant->score[place];
        }
    }
    return true;
}

void measure_variant_close(measure_variant *variant)
{
    if (variant->shares) {
        variant_close(&variant->bound.functions);
    } else {
        variant_unload(&variant->bound);
    }
    free(variant->code);
    free(variant->score);
    free(variant->token_code);
    free(variant->token_score);
    free(variant->chunk_code);
    free(variant->chunk_score);
    *variant = (measure_variant){.job = NULL};
}

/* Returns the place of this call and moves *position to the next one that has batch tokens before the end. */
static size_t take(const measure_pool *pool, size_t batch, size_t step, size_t *position)
{
    const size_t taken = *position;
    *position = taken + step + batch <= pool->tokens ? taken + step : 0;
    return taken;
}

void measure_variant_ffn(const measure_variant *variant, const measure_pool *pool, size_t batch, size_t *position, float *y)
{
    const size_t place = take(pool, batch, batch, position);
    variant->bound.functions.ffn(variant->bound.weights, pool->x + place * pool->d, y, batch, variant->bound.scratch);
}

void measure_variant_project(const measure_variant *variant, size_t batch, size_t *position, float *y)
{
    (void)y;
    const variant_description *job = variant->job;
    const float *x = variant->pool->x + take(variant->pool, batch, batch, position) * variant->pool->d;
    for (size_t first = 0; first < batch; first += job->chunk) {
        variant->bound.functions.project(variant->bound.weights, x + first * variant->pool->d, smaller(job->chunk, batch - first),
                                         variant->chunk_code, variant->chunk_score, variant->bound.scratch);
    }
}

/* Lays the codes and scores of a few tokens out as the chunk's first tile: warm in cache, as project leaves them. */
static void fill_tile(const measure_variant *variant, size_t place, size_t count)
{
    const size_t tile = variant->job->tile, slots = variant_slots(variant->job);
    for (size_t lane = 0; lane < count; ++lane) {
        const uint16_t *code = variant->token_code + (place + lane) * slots;
        const float *score = variant->token_score + (place + lane) * slots;
        for (size_t slot = 0; slot < slots; ++slot) {
            variant->chunk_code[slot * tile + lane] = code[slot];
            variant->chunk_score[slot * tile + lane] = score[slot];
        }
    }
}

void measure_variant_gather(const measure_variant *variant, size_t batch, size_t *position, float *y)
{
    const variant_description *job = variant->job;
    if (batch < job->tile) {
        fill_tile(variant, take(variant->pool, batch, batch, position), batch);
        variant->bound.functions.gather(variant->bound.weights, variant->chunk_code, variant->chunk_score, y, batch,
                                        variant->bound.scratch);
        return;
    }
    const size_t place = take(variant->pool, batch, round_up(batch, job->tile), position);
    for (size_t first = 0; first < batch; first += job->chunk) {
        const size_t entry = (place + first) * variant_slots(job);
        variant->bound.functions.gather(variant->bound.weights, variant->code + entry, variant->score + entry, y + first * job->d_out,
                                        smaller(job->chunk, batch - first), variant->bound.scratch);
    }
}
