/* Loads compiled variants of the emitted FFN and makes the calls that are timed. */
#include "measure_variant.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

bool measure_blob_open(const char *path, measure_blob *blob, char *error, size_t error_size)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(status.st_mode) || status.st_size == 0) {
        snprintf(error, error_size, "%s: must be a file of packed weights", path);
    } else {
        void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
        if (data != MAP_FAILED) {
            *blob = (measure_blob){.data = data, .bytes = (size_t)status.st_size};
            close(file);
            return true;
        }
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
    }
    if (file >= 0) {
        close(file);
    }
    return false;
}

void measure_blob_close(measure_blob *blob)
{
    munmap((void *)(uintptr_t)blob->data, blob->bytes);
    *blob = (measure_blob){0};
}

/* Aligned to 64 bytes and touched. */
static void *allocate(size_t bytes)
{
    bytes = round_up(bytes + 1, 64);
    void *memory = aligned_alloc(64, bytes);
    if (memory) {
        memset(memory, 0, bytes);
    }
    return memory;
}

/* Puts the address of a symbol into a function pointer. */
static bool find(const measure_variant *variant, const char *symbol, void *function, char *error, size_t error_size)
{
    void *address = dlsym(variant->library, symbol);
    if (!address) {
        snprintf(error, error_size, "%s: %s: no such symbol", variant->job->library, symbol);
        return false;
    }
    memcpy(function, &address, sizeof(address));
    return true;
}

static bool load(measure_variant *variant, const measure_blob *blob, char *error, size_t error_size)
{
    const measure_variant_job *job = variant->job;
    variant->library = dlopen(job->library, RTLD_NOW | RTLD_LOCAL);
    if (!variant->library) {
        snprintf(error, error_size, "%s", dlerror());
        return false;
    }
    int (*bind)(const void *, size_t, void *);
    if (!find(variant, job->bind, &bind, error, error_size) || !find(variant, job->ffn, &variant->ffn, error, error_size) ||
        !find(variant, job->project, &variant->project, error, error_size) ||
        !find(variant, job->gather, &variant->gather, error, error_size)) {
        return false;
    }

    const size_t entries = round_up(variant->pool->tokens, job->tile) * job->h, chunk_entries = job->chunk * job->h;
    variant->weights = allocate(job->weights_struct_bytes);
    variant->scratch = allocate(job->scratch_bytes);
    variant->code = allocate(entries * sizeof(*variant->code));
    variant->score = allocate(entries * sizeof(*variant->score));
    variant->token_code = allocate(entries * sizeof(*variant->code));
    variant->token_score = allocate(entries * sizeof(*variant->score));
    variant->chunk_code = allocate(chunk_entries * sizeof(*variant->code));
    variant->chunk_score = allocate(chunk_entries * sizeof(*variant->score));
    if (!variant->weights || !variant->scratch || !variant->code || !variant->score || !variant->token_code || !variant->token_score ||
        !variant->chunk_code || !variant->chunk_score) {
        snprintf(error, error_size, "%s: out of memory", job->library);
        return false;
    }

    const int status = bind(blob->data, blob->bytes, variant->weights);
    if (status != 0) {
        snprintf(error, error_size, "%s: %s refuses the weights with code %d", job->library, job->bind, status);
        return false;
    }
    return true;
}

bool measure_variant_open(measure_variant *variant, const measure_variant_job *job, const measure_blob *blob, const measure_pool *pool,
                          char *error, size_t error_size)
{
    *variant = (measure_variant){.job = job, .pool = pool};
    if (!load(variant, blob, error, error_size)) {
        measure_variant_close(variant);
        return false;
    }
    for (size_t first = 0; first < pool->tokens; first += job->chunk) {
        variant->project(variant->weights, pool->x + first * pool->d, least(job->chunk, pool->tokens - first),
                         variant->code + first * job->h, variant->score + first * job->h, variant->scratch);
    }
    for (size_t token = 0; token < pool->tokens; ++token) {
        const size_t lane = token / job->tile * job->tile * job->h + token % job->tile;
        for (size_t table = 0; table < job->h; ++table) {
            variant->token_code[token * job->h + table] = variant->code[lane + table * job->tile];
            variant->token_score[token * job->h + table] = variant->score[lane + table * job->tile];
        }
    }
    return true;
}

void measure_variant_close(measure_variant *variant)
{
    free(variant->weights);
    free(variant->scratch);
    free(variant->code);
    free(variant->score);
    free(variant->token_code);
    free(variant->token_score);
    free(variant->chunk_code);
    free(variant->chunk_score);
    if (variant->library) {
        dlclose(variant->library);
    }
    *variant = (measure_variant){0};
}

/* Returns the place of this call and moves *position to the next one that has batch tokens before the end. */
static size_t take(const measure_variant *variant, size_t batch, size_t step, size_t *position)
{
    const size_t taken = *position;
    *position = taken + step + batch <= variant->pool->tokens ? taken + step : 0;
    return taken;
}

void measure_variant_ffn(const measure_variant *variant, size_t batch, size_t *position, float *y)
{
    const size_t place = take(variant, batch, batch, position);
    variant->ffn(variant->weights, variant->pool->x + place * variant->pool->d, y, batch, variant->scratch);
}

void measure_variant_project(const measure_variant *variant, size_t batch, size_t *position, float *y)
{
    (void)y;
    const measure_variant_job *job = variant->job;
    const float *x = variant->pool->x + take(variant, batch, batch, position) * variant->pool->d;
    for (size_t first = 0; first < batch; first += job->chunk) {
        variant->project(variant->weights, x + first * variant->pool->d, least(job->chunk, batch - first), variant->chunk_code,
                         variant->chunk_score, variant->scratch);
    }
}

/* Lays the codes and scores of a few tokens out as the chunk's first tile: warm in cache, as project leaves them. */
static void fill_tile(const measure_variant *variant, size_t place, size_t count)
{
    const size_t tile = variant->job->tile, h = variant->job->h;
    for (size_t lane = 0; lane < count; ++lane) {
        const uint16_t *code = variant->token_code + (place + lane) * h;
        const float *score = variant->token_score + (place + lane) * h;
        for (size_t table = 0; table < h; ++table) {
            variant->chunk_code[table * tile + lane] = code[table];
            variant->chunk_score[table * tile + lane] = score[table];
        }
    }
}

void measure_variant_gather(const measure_variant *variant, size_t batch, size_t *position, float *y)
{
    const measure_variant_job *job = variant->job;
    if (batch < job->tile) {
        fill_tile(variant, take(variant, batch, batch, position), batch);
        variant->gather(variant->weights, variant->chunk_code, variant->chunk_score, y, batch);
        return;
    }
    const size_t place = take(variant, batch, round_up(batch, job->tile), position);
    for (size_t first = 0; first < batch; first += job->chunk) {
        const size_t entry = (place + first) * job->h;
        variant->gather(variant->weights, variant->code + entry, variant->score + entry, y + first * job->d_out,
                        least(job->chunk, batch - first));
    }
}
