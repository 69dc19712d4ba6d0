/* The Lua module `inputs`: what timed calls read, and functions of our own for prepared calls.

   inputs.fill(memory, kind, seed[, number]) writes all of a memory. kind: "normal", numbers of deviation `number`, 1 if absent; "uniform",
   from 0 to 1; "skewed", tokens of `number` floats such as text has; "units", int16 of integer kernels; "ids", int32 below `number`;
   "order", uint32 in an order without a pattern, each once, then the first `number` of them again.

   Addresses of functions: inputs.copy(to, from, bytes); inputs.tile and inputs.by_token, see below; fma(operations); stream(memory, bytes,
   times) reads in one stream, read(memory, bytes), rounded down to a multiple of 2048, in four side by side, to which memory gives more;
   rows(memory, row, order, count, ahead) reads rows of `row` bytes, whole lines, and prefetches the one that is `ahead` further on;
   strips(memory, row, order, count, together) reads them in strips, the first ones of so many rows, then the second ones, and so on. */
#include "harness/measure/modules.h"

#include "harness/base/lua_compiled.h"
#include "harness/base/timed_inputs.h"

#include <lauxlib.h>

#include <stdlib.h>
#include <string.h>

/* Fisher and Yates: no number comes back before all others were there. */
static void fill_order(uint32_t *order, size_t count, size_t again, random_state random)
{
    for (size_t i = 0; i < count - again; ++i) {
        const size_t other = random_bits(&random) % (i + 1);
        order[i] = order[other];
        order[other] = (uint32_t)i;
    }
    memcpy(order + count - again, order, again * sizeof *order);
}

static int fill(lua_State *L)
{
    enum kind { NORMAL, UNIFORM, SKEWED, UNITS, IDS, ORDER };
    static const char *const kinds[] = {"normal", "uniform", "skewed", "units", "ids", "order", NULL};
    size_t bytes;
    void *data = compiled_memory_at(L, 1, &bytes);
    float *numbers = data;
    const size_t count = bytes / sizeof *numbers;
    const int kind = luaL_checkoption(L, 2, NULL, kinds);
    random_state random = random_seed((uint64_t)luaL_checkinteger(L, 3));
    if (kind == NORMAL) {
        inputs_normal(numbers, count, random, luaL_optnumber(L, 4, 1.0));
    } else if (kind == SKEWED) {
        const size_t width = (size_t)luaL_checkinteger(L, 4);
        inputs_skewed(numbers, count, width, random, lua_newuserdatauv(L, INPUTS_KINDS * width * sizeof *numbers, 0));
    } else if (kind == ORDER) {
        fill_order(data, count, (size_t)luaL_checkinteger(L, 4), random);
    } else if (kind == UNITS) {
        inputs_units(data, bytes / sizeof(int16_t), random);
    } else if (kind == IDS) {
        inputs_ids(data, count, random, (size_t)luaL_checkinteger(L, 4));
    }
    for (size_t i = 0; kind == UNIFORM && i < count; ++i)
        numbers[i] = (float)random_uniform(&random);
    return 0;
}

static uintptr_t copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

/* Lays codes and scores [tokens][slots] out as a tile [slots][width]: warm in cache, as a projection leaves them. About 0.6 ns a token and
   slot; to read them from a tile kept for each call would cost more, for it would be cold. */
static uintptr_t tile(uint16_t *to_code, float *to_score, const uint16_t *from_code, const float *from_score, size_t tokens, size_t slots,
                      size_t width)
{
    for (size_t lane = 0; lane < tokens; ++lane) {
        for (size_t slot = 0; slot < slots; ++slot) {
            to_code[slot * width + lane] = from_code[lane * slots + slot];
            to_score[slot * width + lane] = from_score[lane * slots + slot];
        }
    }
    return 0;
}

/* The other way round, of tiles one behind the other. */
static uintptr_t by_token(uint16_t *to_code, float *to_score, const uint16_t *from_code, const float *from_score, size_t tokens,
                          size_t slots, size_t width)
{
    for (size_t token = 0; token < tokens; ++token) {
        for (size_t slot = 0; slot < slots; ++slot) {
            const size_t from = (token / width * slots + slot) * width + token % width;
            to_code[token * slots + slot] = from_code[from];
            to_score[token * slots + slot] = from_score[from];
        }
    }
    return 0;
}

int luaopen_inputs(lua_State *L)
{
    lua_newtable(L);
    lua_pushcfunction(L, fill);
    lua_setfield(L, -2, "fill");
    compiled_push_function(L, (compiled_function *)(void (*)(void))copy);
    lua_setfield(L, -2, "copy");
    compiled_push_function(L, (compiled_function *)(void (*)(void))tile);
    lua_setfield(L, -2, "tile");
    compiled_push_function(L, (compiled_function *)(void (*)(void))by_token);
    lua_setfield(L, -2, "by_token");
    limits_add_functions(L);
    return 1;
}
