/* Checkpoints of a training run: all that it is resumed from, and the weights alone as one of the model. */
#include "harness/train/run_state.h"

#include "gen/host/files.h"
#include "gen/host/host.h"
#include "harness/base/memory.h"

#include <lauxlib.h>

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_TEXT = 65536 };

/* A row of tensors of a file: floats from the memory of a run. */
typedef struct {
    safetensors_description as;
    float *at;
    size_t rows, columns, pitch;
} stored;

/* Adds the stored form of `t` in memory[...], called prefix and the tensor's name; the stack keeps that name. */
static stored stored_tensor(lua_State *L, const char *prefix, const tensor *t, float *memory)
{
    stored s = {.as = t->as, .at = memory + t->at, .rows = t->rows, .columns = t->columns, .pitch = t->pitch};
    s.as.name = lua_pushfstring(L, "%s%s", prefix, t->as.name);
    return s;
}

static stored stored_floats(const char *name, float *memory, size_t count)
{
    const safetensors_description as = {.name = name, .rank = 1, .shape = {(int64_t)count}, .dtype = DTYPE_F32};
    return (stored){.as = as, .at = memory, .rows = 1, .columns = count, .pitch = count};
}

/* Fills list[...] with all that a run is resumed from but the text; returns how many. Pushes their names. */
static size_t all_state(lua_State *L, run_state *r, stored *list)
{
    size_t count = 0;
    luaL_checkstack(L, (int)(3 * r->tensor_count) + 8, "too many tensors");
    for (size_t i = 0; i < r->tensor_count; ++i) {
        const tensor *t = &r->tensors[i];
        list[count++] = stored_tensor(L, "weights.", t, weights_of(r));
        if (t->table_rows)
            continue;
        list[count++] = stored_tensor(L, "first.", t, r->first);
        list[count++] = stored_tensor(L, "second.", t, r->second);
    }
    if (r->row_count) {
        list[count++] = stored_floats("table_state", r->call.table_state, r->state_count);
        list[count++] = stored_floats("row_uses", (float *)(void *)r->call.row_uses, r->row_count); /* their bits */
    }
    return count;
}

/* Writes `list` into a file, all or nothing. */
static bool write_stored(const char *path, const stored *list, size_t count, char *error)
{
    safetensors_description *descriptions = calloc(count + 1, sizeof *descriptions);
    if (!descriptions)
        return files_error(error, ERROR_SIZE, "%s: not enough memory", path);
    for (size_t i = 0; i < count; ++i)
        descriptions[i] = list[i].as;
    safetensors_writer *writer = safetensors_create(path, descriptions, count, error, ERROR_SIZE);
    free(descriptions);
    if (!writer)
        return false;
    for (size_t i = 0; i < count; ++i) {
        const stored *s = &list[i];
        const bool whole = s->pitch == s->columns;
        for (size_t row = 0; row < (whole ? 1 : s->rows); ++row)
            if (!safetensors_append(writer, s->at + row * s->pitch, (whole ? s->rows : 1) * s->columns * sizeof(float), error,
                                    ERROR_SIZE)) {
                safetensors_abandon(writer);
                return false;
            }
    }
    return safetensors_finish(writer, error, ERROR_SIZE);
}

static bool read_stored(const safetensors *file, const stored *s, char *error)
{
    const safetensors_tensor *t = safetensors_expect(file, "", s->as.name, s->as.shape, s->as.rank, error, ERROR_SIZE);
    if (!t)
        return false;
    if (t->dtype != DTYPE_F32)
        return files_error(error, ERROR_SIZE, "%s: %s: must be F32", safetensors_path(file), s->as.name);
    for (size_t row = 0; row < s->rows; ++row)
        if (!safetensors_read_bytes(file, t, row * s->columns, s->columns, s->at + row * s->pitch, error, ERROR_SIZE))
            return false;
    return true;
}

/* The digest of a checkpoint: over names, numbers of values, and values of its other tensors in the order of names; a float for each byte.
   Earlier versions had one of names and values alone, and digests of texts that did not say where one ends. */
#define DIGEST "sha256"
#define EARLIER_DIGEST "digest"

static void begin_tensor(struct sha256_ctx *context, const char *name, uint64_t count)
{
    sha256_update(context, strlen(name) + 1, (const uint8_t *)name);
    sha256_update(context, sizeof count, (const uint8_t *)&count);
}

static void finish_digest(struct sha256_ctx *context, float letters[SHA256_DIGEST_SIZE])
{
    uint8_t bytes[SHA256_DIGEST_SIZE];
    sha256_digest(context, sizeof bytes, bytes);
    for (size_t i = 0; i < sizeof bytes; ++i)
        letters[i] = bytes[i];
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const stored *)a)->as.name, ((const stored *)b)->as.name);
}

/* Sorts `list` by name for its digest. */
static void digest_of(stored *list, size_t count, float letters[SHA256_DIGEST_SIZE])
{
    struct sha256_ctx context;
    sha256_init(&context);
    qsort(list, count, sizeof *list, by_name);
    for (const stored *s = list; s < list + count; ++s) {
        begin_tensor(&context, s->as.name, s->rows * s->columns);
        for (size_t row = 0; row < s->rows; ++row)
            sha256_update(&context, s->columns * sizeof(float), (const uint8_t *)(s->at + row * s->pitch));
    }
    finish_digest(&context, letters);
}

/* Whether a checkpoint holds what its digest is of. */
static bool is_as_written(const safetensors *file, char *error)
{
    enum { PIECE = 16384 };
    struct sha256_ctx context;
    float wanted[SHA256_DIGEST_SIZE], own[SHA256_DIGEST_SIZE], values[PIECE];
    if (safetensors_find(file, EARLIER_DIGEST))
        return files_error(error, ERROR_SIZE, "%s: is of a run of an earlier lookupc: go on with that one, or remove the file",
                           safetensors_path(file));
    sha256_init(&context);
    for (size_t i = 0; i < safetensors_count(file); ++i) {
        const safetensors_tensor *t = safetensors_at(file, i);
        if (strcmp(t->name, DIGEST) == 0)
            continue;
        if (t->dtype != DTYPE_F32)
            return files_error(error, ERROR_SIZE, "%s: %s: must be F32", safetensors_path(file), t->name);
        begin_tensor(&context, t->name, t->count);
        for (size_t at = 0; at < t->count; at += PIECE) {
            const size_t count = smaller(PIECE, t->count - at);
            if (!safetensors_read_bytes(file, t, at, count, values, error, ERROR_SIZE))
                return false;
            sha256_update(&context, count * sizeof *values, (const uint8_t *)values);
        }
    }
    finish_digest(&context, own);
    const stored digest = stored_floats(DIGEST, wanted, SHA256_DIGEST_SIZE);
    if (!read_stored(file, &digest, error))
        return false;
    return memcmp(own, wanted, sizeof own) == 0 ||
           files_error(error, ERROR_SIZE, "%s: is damaged: its values are not those of its digest", safetensors_path(file));
}

int run_save(lua_State *L)
{
    char error[ERROR_SIZE];
    run_state *r = run_at(L);
    size_t length;
    const char *path = luaL_checkstring(L, 2), *text = luaL_checklstring(L, 3, &length);
    luaL_argcheck(L, length <= LARGEST_TEXT, 3, "too long");
    stored *list = lua_newuserdatauv(L, (3 * r->tensor_count + 4) * sizeof *list, 0);
    float digest[SHA256_DIGEST_SIZE];
    float *letters = lua_newuserdatauv(L, (length + 1) * sizeof *letters, 0); /* one a byte: the format has floats only */
    for (size_t i = 0; i < length; ++i)
        letters[i] = (float)(unsigned char)text[i];
    size_t count = all_state(L, r, list);
    list[count++] = stored_floats("run", letters, length);
    digest_of(list, count, digest);
    list[count++] = stored_floats(DIGEST, digest, SHA256_DIGEST_SIZE);
    if (!write_stored(path, list, count, error))
        return host_fail(L, error);
    lua_pushboolean(L, true);
    return 1;
}

int run_export(lua_State *L)
{
    char error[ERROR_SIZE];
    run_state *r = run_at(L);
    const char *path = luaL_checkstring(L, 2);
    stored *list = lua_newuserdatauv(L, (r->tensor_count + 1) * sizeof *list, 0);
    luaL_checkstack(L, (int)r->tensor_count + 8, "too many tensors");
    for (size_t i = 0; i < r->tensor_count; ++i)
        list[i] = stored_tensor(L, "", &r->tensors[i], weights_of(r));
    if (!write_stored(path, list, r->tensor_count, error))
        return host_fail(L, error);
    lua_pushboolean(L, true);
    return 1;
}

/* train.text(path) -> the text that run:save wrote there | nil, message */
int train_text(lua_State *L)
{
    char error[ERROR_SIZE];
    float letters[4096];
    safetensors *file = safetensors_open(luaL_checkstring(L, 1), error, sizeof error);
    if (!file)
        return host_fail(L, error);
    const safetensors_tensor *t = safetensors_expect(file, "", "run", NULL, 1, error, sizeof error);
    bool good = t != NULL;
    if (good && (t->dtype != DTYPE_F32 || t->count > LARGEST_TEXT))
        good = files_error(error, sizeof error, "%s: run: must be at most %d F32", safetensors_path(file), LARGEST_TEXT);
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    for (size_t at = 0; good && at < t->count; at += 4096) {
        const size_t count = smaller(4096, t->count - at);
        good = safetensors_read_bytes(file, t, at, count, letters, error, sizeof error);
        for (size_t i = 0; good && i < count; ++i) {
            const unsigned char letter = letters[i] >= 0 && letters[i] < 256 ? (unsigned char)letters[i] : 0;
            if (letters[i] != (float)letter)
                good = files_error(error, sizeof error, "%s: run: must be numbers of bytes", safetensors_path(file));
            luaL_addchar(&text, (char)letter);
        }
    }
    good = good && is_as_written(file, error);
    safetensors_close(file);
    luaL_pushresult(&text);
    return good ? 1 : host_fail(L, error);
}

int run_load(lua_State *L)
{
    char error[ERROR_SIZE];
    run_state *r = run_at(L);
    stored *list = lua_newuserdatauv(L, (3 * r->tensor_count + 4) * sizeof *list, 0);
    safetensors *file = safetensors_open(luaL_checkstring(L, 2), error, sizeof error);
    if (!file)
        return host_fail(L, error);
    const size_t count = all_state(L, r, list);
    bool good = true;
    for (size_t i = 0; good && i < count; ++i)
        good = read_stored(file, &list[i], error);
    safetensors_close(file);
    if (!good)
        return host_fail(L, error);
    run_copy_all(r, false, 0, 1);
    if (r->ranks && r->ranks->number > 0) /* the first one has those of all */
        memset(r->call.row_uses, 0, r->row_count * sizeof(uint32_t));
    lua_pushboolean(L, true);
    return 1;
}
