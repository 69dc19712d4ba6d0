/* Functions that stand before FFNs and gathers of an emitted library, and what they note. */
#include "harness/verify/interposed.h"

#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "harness/base/lua_compiled.h"
#include "harness/base/modules.h"
#include "harness/reference/fields.h"

#include <lauxlib.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "interposed: ";

enum { ERROR_SIZE = 4096 + 256 };

typedef void ffn_function(const void *weights, const float *x, float *y, size_t tokens, void *scratch);
typedef void gather_function(const void *weights, const uint16_t *code, const float *score, float *y, size_t tokens, void *scratch);

typedef struct {
    const char *name;
    bool gathers;
    size_t tile, d, slots, step;
    reference_form form;
    ffn_function *ffn; /* one of the two: the library's own */
    gather_function *gather;
} function;

struct seen {
    size_t d, slots, room, count; /* count: of notes, of which there is room for so many */
    /* A note is { the weights of its layer (where the first of them lies), x[d], score[slots], code[slots], form }, with d and slots of the
       widest. */
    unsigned char *notes;
    size_t functions_count;
    function functions[]; /* [functions_count] */
};

static size_t note_bytes(size_t d, size_t slots)
{
    return (sizeof(const void *) + (d + slots) * sizeof(float) + (slots + 1) * sizeof(uint16_t) + 7) / 8 * 8;
}

/* Of this process, which runs one job; NULL: it is not watched. */
static struct seen *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local const float *next_x; /* of the FFN that this thread is in: of the token that is gathered next */

static void note(const function *f, const void *weights, const float *x, const uint16_t *code, const float *score)
{
    if (current->count++ >= current->room)
        return;
    unsigned char *to = current->notes + (current->count - 1) * note_bytes(current->d, current->slots);
    memcpy(to, weights, sizeof(const void *));
    float *values = (float *)(void *)(to + sizeof(const void *));
    memcpy(values, x, f->d * sizeof *x);
    uint16_t *codes = (uint16_t *)(void *)(values + current->d + current->slots);
    for (size_t slot = 0; slot < f->slots; ++slot) {
        codes[slot] = code[slot * f->tile];
        values[current->d + slot] = score ? score[slot * f->tile] : 0.0f;
    }
    codes[current->slots] = (uint16_t)f->form;
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

/* What the job at index 1 describes; it lives until the process ends. */
static struct seen *seen_at(lua_State *L)
{
    lua_getfield(L, 1, "functions");
    const size_t count = (size_t)luaL_len(L, 2);
    struct seen *s = calloc(1, sizeof *s + count * sizeof *s->functions);
    if (!s)
        luaL_error(L, "not enough memory");
    s->d = field_size(L, 1, where, "d");
    s->slots = field_size(L, 1, where, "slots");
    s->room = field_size(L, 1, where, "room");
    s->functions_count = count;
    s->notes = malloc(s->room * note_bytes(s->d, s->slots) + 1);
    if (!s->notes)
        luaL_error(L, "not enough memory");
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        s->functions[i] = (function){
            .name = field_text(L, 3, where, "name", NULL),
            .gathers = field_flag(L, 3, "gather"),
            .tile = field_size(L, 3, where, "tile"),
            .d = field_size(L, 3, where, "d"),
            .slots = field_size(L, 3, where, "slots"),
            .step = field_size(L, 3, where, "step"),
            .form = reference_form_at(L, 3),
        };
        lua_pop(L, 1);
    }
    return s;
}

static int watch(lua_State *L)
{
    char error[ERROR_SIZE];
    loaded_library stand_in;
    void (**ffn)(size_t, const void *, const float *, float *, size_t, void *);
    void (**gather)(size_t, const void *, const uint16_t *, const float *, float *, size_t, void *);
    lua_settop(L, 1);
    if (lua_isnil(L, 1))
        return 0;
    current = seen_at(L);
    if (!library_open(&stand_in, field_text(L, 1, where, "stand_in", NULL), LIBRARY_SHOWN, error, sizeof error) ||
        !library_find(&stand_in, "lookupc_ffn", &ffn, error, sizeof error) ||
        !library_find(&stand_in, "lookupc_gather", &gather, error, sizeof error))
        return luaL_error(L, "%s", error);
    *ffn = stand_before_ffn;
    *gather = stand_before_gather;
    return 0;
}

static int watch_behind(lua_State *L)
{
    char error[ERROR_SIZE];
    const loaded_library *own = compiled_library_at(L, 1);
    for (size_t i = 0; current && i < current->functions_count; ++i) {
        function *f = &current->functions[i];
        if (!library_find(own, f->name, f->gathers ? (void *)&f->gather : (void *)&f->ffn, error, sizeof error))
            return luaL_error(L, "%s", error);
    }
    return 0;
}

static int taken_notes(lua_State *L)
{
    if (!current || current->count > current->room)
        return 0;
    lua_pushlstring(L, (const char *)current->notes, current->count * note_bytes(current->d, current->slots));
    return 1;
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

const reference_looked *interposed_notes(lua_State *L, int job, int index, size_t *count)
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
        const uint16_t *codes = (const uint16_t *)(const void *)(values + d + slots);
        list[i] = (reference_looked){
            .layer = i == 0 ? 0 : list[i - 1].layer + (orders[i].weights != orders[i - 1].weights ? 1 : 0),
            .x = values,
            .score = values + d,
            .code = codes,
            .form = (reference_form)codes[slots],
        };
    }
    return list;
}

int luaopen_interposed(lua_State *L)
{
    static const luaL_Reg functions[] = {{"watch", watch}, {"watch_behind", watch_behind}, {"notes", taken_notes}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
