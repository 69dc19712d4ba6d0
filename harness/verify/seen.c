/* Functions that stand before FFNs and gathers of an emitted library, and what they note. */
#include "harness/verify/seen.h"

#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "harness/base/symbol.h"

#include <lauxlib.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char where[] = "seen: ";

typedef void ffn_function(const void *weights, const float *x, float *y, size_t tokens, void *scratch);
typedef void gather_function(const void *weights, const uint16_t *code, const float *score, float *y, size_t tokens, void *scratch);

typedef struct {
    const char *name;
    bool gathers;
    size_t tile, d, slots, step;
    ffn_function *ffn; /* one of the two: the library's own */
    gather_function *gather;
} function;

/* In shared memory. A note is { the weights of its layer (where the first of them lies), x[d], score[slots], code[slots] }, with d and
   slots of the widest. */
typedef struct {
    size_t count;
    unsigned char notes[];
} memory;

struct seen {
    const char *stand_in;
    size_t d, slots, room, functions_count;
    memory *memory;
    size_t memory_bytes;
    function *functions; /* [functions_count] */
};

static size_t note_bytes(size_t d, size_t slots)
{
    return (sizeof(const void *) + (d + slots) * sizeof(float) + slots * sizeof(uint16_t) + 7) / 8 * 8;
}

seen *seen_at(lua_State *L, int index, bool *short_of_memory)
{
    *short_of_memory = false;
    const int top = lua_gettop(L);
    if (lua_getfield(L, index, "seen") != LUA_TTABLE) {
        lua_settop(L, top);
        return NULL;
    }
    const int job = lua_gettop(L);
    seen *s = calloc(1, sizeof *s);
    lua_getfield(L, job, "functions");
    const size_t count = (size_t)luaL_len(L, -1);
    if (s) {
        s->stand_in = field_text(L, job, where, "stand_in", NULL);
        s->d = field_size(L, job, where, "d");
        s->slots = field_size(L, job, where, "slots");
        s->room = field_size(L, job, where, "room");
        s->functions_count = count;
        s->functions = calloc(count + 1, sizeof *s->functions);
        s->memory_bytes = sizeof *s->memory + s->room * note_bytes(s->d, s->slots);
        s->memory = mmap(NULL, s->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (s->memory == MAP_FAILED)
            s->memory = NULL;
    }
    if (!s || !s->functions || !s->memory) {
        seen_free(s);
        lua_settop(L, top);
        *short_of_memory = true;
        return NULL;
    }
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, job + 1, (lua_Integer)i + 1);
        const int row = lua_gettop(L);
        s->functions[i] = (function){
            .name = field_text(L, row, where, "name", NULL),
            .gathers = field_flag(L, row, "gather"),
            .tile = field_size(L, row, where, "tile"),
            .d = field_size(L, row, where, "d"),
            .slots = field_size(L, row, where, "slots"),
            .step = field_size(L, row, where, "step"),
        };
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    return s;
}

void seen_free(seen *s)
{
    if (!s)
        return;
    if (s->memory)
        munmap(s->memory, s->memory_bytes);
    free(s->functions);
    free(s);
}

/* Of this process, which runs one job. */
static seen *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local const float *next_x; /* of the FFN that this thread is in: of the token that is gathered next */

static void note(const function *f, const void *weights, const float *x, const uint16_t *code, const float *score)
{
    memory *m = current->memory;
    if (m->count++ >= current->room)
        return;
    unsigned char *to = m->notes + (m->count - 1) * note_bytes(current->d, current->slots);
    memcpy(to, weights, sizeof(const void *));
    float *values = (float *)(void *)(to + sizeof(const void *));
    memcpy(values, x, f->d * sizeof *x);
    uint16_t *codes = (uint16_t *)(void *)(values + current->d + current->slots);
    for (size_t slot = 0; slot < f->slots; ++slot) {
        codes[slot] = code[slot * f->tile];
        values[current->d + slot] = score ? score[slot * f->tile] : 0.0f;
    }
}

static void stand_before_ffn(size_t number, const void *weights, const float *x, float *y, size_t tokens, void *scratch)
{
    const float *outer = next_x;
    next_x = x;
    current->functions[number].ffn(weights, x, y, tokens, scratch);
    next_x = outer;
}

static void stand_before_gather(size_t number, const void *weights, const uint16_t *code, const float *score, float *y, size_t tokens,
                                void *scratch)
{
    const function *f = &current->functions[number];
    pthread_mutex_lock(&lock);
    for (size_t token = 0; next_x && token < tokens; ++token, next_x += f->step) {
        const size_t at = token / f->tile * f->tile * f->slots + token % f->tile;
        note(f, weights, next_x, code + at, score ? score + at : NULL);
    }
    pthread_mutex_unlock(&lock);
    f->gather(weights, code, score, y, tokens, scratch);
}

bool seen_before(seen *s, char *error, size_t error_size)
{
    if (!s)
        return true;
    void *stand_in = dlopen(s->stand_in, RTLD_NOW | RTLD_GLOBAL);
    if (!stand_in)
        return files_error(error, error_size, "%s: %s", s->stand_in, dlerror());
    void (**ffn)(size_t, const void *, const float *, float *, size_t, void *) = NULL;
    void (**gather)(size_t, const void *, const uint16_t *, const float *, float *, size_t, void *) = NULL;
    symbol_find(stand_in, "lookupc_ffn", &ffn);
    symbol_find(stand_in, "lookupc_gather", &gather);
    if (!ffn || !gather)
        return files_error(error, error_size, "%s: lacks a function", s->stand_in);
    current = s;
    *ffn = stand_before_ffn;
    *gather = stand_before_gather;
    return true;
}

bool seen_behind(seen *s, void *library, char *error, size_t error_size)
{
    for (size_t i = 0; s && i < s->functions_count; ++i) {
        function *f = &s->functions[i];
        if (!(f->gathers ? symbol_find(library, f->name, &f->gather) : symbol_find(library, f->name, &f->ffn)))
            return files_error(error, error_size, "%s: is missing", f->name);
    }
    return true;
}

void seen_push(lua_State *L, const seen *s)
{
    if (s && s->memory->count <= s->room)
        lua_pushlstring(L, (const char *)s->memory->notes, s->memory->count * note_bytes(s->d, s->slots));
    else
        lua_pushnil(L);
}

/* A note and the weights of its layer. */
typedef struct {
    const void *weights;
    size_t number;
} order;

static int compare_orders(const void *first, const void *second)
{
    const order *a = first, *b = second;
    const uintptr_t p = (uintptr_t)a->weights, q = (uintptr_t)b->weights;
    return p != q ? (p < q ? -1 : 1) : (a->number > b->number) - (a->number < b->number);
}

const reference_looked *seen_notes(lua_State *L, int job, int index, size_t *count)
{
    *count = 0;
    size_t bytes;
    const char *notes = lua_tolstring(L, index, &bytes);
    if (!notes || lua_getfield(L, job, "seen") != LUA_TTABLE)
        return NULL;
    const size_t d = field_size(L, -1, where, "d"), slots = field_size(L, -1, where, "slots"), step = note_bytes(d, slots);
    *count = bytes / step;
    reference_looked *list = lua_newuserdatauv(L, (*count + 1) * sizeof *list, 0);
    order *orders = lua_newuserdatauv(L, (*count + 1) * sizeof *orders, 0);
    /* a string of Lua may lie anywhere */
    float *copy = lua_newuserdatauv(L, bytes + 8, 0);
    memcpy(copy, notes, bytes);
    const unsigned char *from = (const unsigned char *)copy;
    for (size_t i = 0; i < *count; ++i) {
        memcpy(&orders[i].weights, from + i * step, sizeof orders[i].weights);
        orders[i].number = i;
    }
    qsort(orders, *count, sizeof *orders, compare_orders);
    for (size_t i = 0; i < *count; ++i) {
        const float *values = (const float *)(const void *)(from + orders[i].number * step + sizeof(const void *));
        list[i] = (reference_looked){
            .layer = i == 0 ? 0 : list[i - 1].layer + (orders[i].weights != orders[i - 1].weights ? 1 : 0),
            .x = values,
            .score = values + d,
            .code = (const uint16_t *)(const void *)(values + d + slots),
        };
    }
    return list;
}
