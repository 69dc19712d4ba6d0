/* Prepared calls of compiled functions, as `compiled.prepare` of Lua makes them: see lua_compiled.c. */
#include "harness/base/prepared.h"

#include "gen/host/host.h"
#include "harness/base/lua_compiled.h"

#include <lauxlib.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PREPARED "compiled.prepared"

enum { FIRST_WORD = 4 }; /* of call:step(caller, function, status, word, …), behind the call itself and those */

typedef struct step {
    compiled_function *called;
    bool status; /* whether it returns one, 0 for success */
    uintptr_t word[COMPILED_WORDS];
} step;

/* A word that is another one at each place: first + the number of the place * stride, or the int32 there. */
typedef struct moving_word {
    size_t step, word;
    uintptr_t first, stride;
    bool value;
} moving_word;

/* What one caller does again and again. */
typedef struct walk {
    step *steps;
    moving_word *moving;
    size_t step_count, moving_count, places, place, stride;
} walk;

struct prepared_call {
    size_t callers;
    walk walks[]; /* of each of them */
};

size_t prepared_callers(const prepared_call *call)
{
    return call->callers;
}

bool prepared_run(prepared_call *call, size_t caller)
{
    walk *w = &call->walks[caller];
    for (const moving_word *m = w->moving, *end = m + w->moving_count; m < end; ++m) {
        const uintptr_t at = m->first + w->place * m->stride;
        const int32_t *value = (const int32_t *)at; /* NOLINT(performance-no-int-to-ptr) */
        w->steps[m->step].word[m->word] = m->value ? (uintptr_t)*value : at;
    }
    w->place += w->stride;
    w->place -= w->place < w->places ? 0 : w->places;
    bool good = true;
    for (const step *s = w->steps, *end = s + w->step_count; s < end; ++s)
        good &= (int)compiled_call(s->called, s->word) == 0 || !s->status;
    return good;
}

prepared_call *prepared_at(lua_State *L, int index)
{
    return luaL_checkudata(L, index, PREPARED);
}

static int prepare(lua_State *L)
{
    const lua_Integer callers = luaL_checkinteger(L, 1), places = luaL_checkinteger(L, 2), first = luaL_optinteger(L, 3, 0);
    luaL_argcheck(L, callers >= 1 && callers <= 1024, 1, "must be from 1 to 1024");
    luaL_argcheck(L, places >= 1, 2, "must be at least 1");
    luaL_argcheck(L, first >= 0, 3, "must be at least 0");
    prepared_call *made = lua_newuserdatauv(L, sizeof *made + (size_t)callers * sizeof *made->walks, 1);
    made->callers = (size_t)callers;
    for (size_t i = 0; i < made->callers; ++i)
        made->walks[i] =
            (walk){.places = (size_t)places, .place = ((size_t)first + i) % (size_t)places, .stride = (size_t)(callers % places)};
    luaL_setmetatable(L, PREPARED);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1); /* what keeps its arguments */
    return 1;
}

/* `list` with room for one more. */
static void *longer(lua_State *L, void *list, size_t count, size_t bytes)
{
    void *more = reallocarray(list, count + 1, bytes);
    if (!more)
        luaL_error(L, "not enough memory");
    return more;
}

/* The word at `index`, which is the number `place` of step `s`, for the first place. */
static uintptr_t add_word(lua_State *L, int index, walk *w, size_t place)
{
    moving_word moving = {.step = w->step_count, .word = place, .first = compiled_word_at(L, index)};
    if (!lua_istable(L, index))
        return moving.first;
    lua_getfield(L, index, "place");
    lua_getfield(L, index, "value");
    moving.stride = (uintptr_t)lua_tointeger(L, -2);
    moving.value = lua_toboolean(L, -1);
    lua_pop(L, 2);
    if (moving.stride > 0 || moving.value) {
        w->moving = longer(L, w->moving, w->moving_count, sizeof moving);
        w->moving[w->moving_count++] = moving;
    }
    return moving.first;
}

static int add_step(lua_State *L)
{
    prepared_call *call = prepared_at(L, 1);
    const size_t caller = (size_t)luaL_checkinteger(L, 2);
    const int words = lua_gettop(L) - FIRST_WORD;
    luaL_argcheck(L, caller < call->callers, 2, "there is no such caller");
    luaL_argcheck(L, lua_islightuserdata(L, 3), 3, "must be the address of a function");
    luaL_argcheck(L, words <= COMPILED_WORDS, FIRST_WORD + COMPILED_WORDS + 1, "too many arguments");
    walk *w = &call->walks[caller];
    step made = {.called = compiled_function_at(L, 3), .status = lua_toboolean(L, 4)};
    w->steps = longer(L, w->steps, w->step_count, sizeof made);
    lua_getiuservalue(L, 1, 1);
    for (int i = 0; i < words; ++i) {
        made.word[i] = add_word(L, FIRST_WORD + 1 + i, w, (size_t)i);
        lua_pushvalue(L, FIRST_WORD + 1 + i);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
    w->steps[w->step_count++] = made;
    return 0;
}

static int run_once(lua_State *L)
{
    prepared_call *call = prepared_at(L, 1);
    bool good = true;
    for (size_t caller = 0; caller < call->callers; ++caller)
        good &= prepared_run(call, caller);
    lua_pushboolean(L, good);
    return 1;
}

typedef struct calls_in_thread {
    prepared_call *call;
    size_t caller;
    lua_Integer times;
    bool good;
} calls_in_thread;

static void *run_in_thread(void *argument)
{
    calls_in_thread *calls = argument;
    for (lua_Integer i = 0; i < calls->times; ++i)
        calls->good &= prepared_run(calls->call, calls->caller);
    return NULL;
}

static int run_together(lua_State *L)
{
    enum { MOST = 8 };
    calls_in_thread calls[MOST];
    pthread_t threads[MOST];
    prepared_call *call = prepared_at(L, 1);
    const lua_Integer times = luaL_checkinteger(L, 2);
    size_t started = 0;
    bool good = true;
    luaL_argcheck(L, call->callers <= MOST, 1, "has too many callers");
    for (; started < call->callers; ++started) {
        calls[started] = (calls_in_thread){call, started, times, true};
        if (pthread_create(&threads[started], NULL, run_in_thread, &calls[started]) != 0)
            break;
    }
    for (size_t i = 0; i < started; ++i) {
        pthread_join(threads[i], NULL);
        good &= calls[i].good;
    }
    if (started < call->callers)
        return luaL_error(L, "cannot start a thread");
    lua_pushboolean(L, good);
    return 1;
}

static int close_call(lua_State *L)
{
    prepared_call *call = prepared_at(L, 1);
    for (size_t i = 0; i < call->callers; ++i) {
        free(call->walks[i].steps);
        free(call->walks[i].moving);
    }
    call->callers = 0;
    return 0;
}

void prepared_open(lua_State *L)
{
    static const luaL_Reg methods[] = {{"step", add_step}, {"run", run_once}, {"together", run_together}, {NULL, NULL}};
    host_class(L, PREPARED, close_call, methods);
    lua_pushcfunction(L, prepare);
    lua_setfield(L, -2, "prepare");
}
