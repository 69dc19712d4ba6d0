/* The Lua module `exact_products`: products of rounded inputs in int64.

   exact_products.inputs(type, inputs, panels, tokens, seed) -> x, w, words from token to token of x: random numbers, for three tokens the
   largest and smallest only, as kernels take inputs of the type of that name. "i8", "i7": bytes. "bf16": whole numbers so small that sums
   of up to 250,000 products are exact in float32. "i4", "u4", "q8": weights in groups with scales of 1 and 2, beside bytes; 8,000 such
   products. Those of q8 have random signs: sums of 30,000 are six deviations below 2^24. Minima of u4 are -7 and -8.
   exact_products.fault(type, inputs, panels, tokens, x, w, y, step) -> which element of y, whose tokens are so many floats apart, is not
   the float nearest to the sum of all products, in one line; nil: none */
#include "harness/base/modules.h"

#include "gen/weights/random.h"

#include <lauxlib.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PANEL = 32, EXTREME_TOKENS = 3, GROUP = 32 };

/* How a type packs inputs and weights. */
typedef struct {
    int largest, offset;     /* the largest magnitude that is drawn, and how much larger bytes of weights are */
    size_t per_word, behind; /* inputs of a word; words behind a token's inputs */
    size_t scales;           /* of an output in groups, with a minimum if there are two; 0: weights are in no groups */
    size_t bits;             /* of a weight in groups */
} product_type;

static const char *const names[] = {"i8", "i7", "bf16", "i4", "u4", "q8", NULL};
static const product_type types[] = {{127, 128, 4, 2, 0, 0}, {63, 64, 4, 2, 0, 0}, {8, 0, 2, 0, 0, 0},
                                     {127, 0, 4, 2, 1, 4},   {127, 0, 4, 2, 2, 4}, {127, 0, 4, 2, 1, 8}};

typedef struct {
    const product_type *type;
    size_t inputs, panels, tokens, words, groups, x_step; /* groups: of inputs, 0: they have none */
    void *x, *w;
} product_case;

static bool in_groups(const product_case *c)
{
    return c->type->scales > 0;
}

/* What the first four arguments say. */
static product_case case_at(lua_State *L)
{
    product_case c = {.type = &types[luaL_checkoption(L, 1, NULL, names)],
                      .inputs = (size_t)luaL_checkinteger(L, 2),
                      .panels = (size_t)luaL_checkinteger(L, 3),
                      .tokens = (size_t)luaL_checkinteger(L, 4)};
    c.words = (c.inputs + c.type->per_word - 1) / c.type->per_word;
    c.groups = in_groups(&c) ? (c.inputs + GROUP - 1) / GROUP : 0;
    c.x_step = c.words + c.groups + 3;
    return c;
}

/* An integer of at most that magnitude; `extreme`: one of both ends. */
static int drawn(int largest, random_state *random, bool extreme)
{
    const uint64_t bits = random_bits(random);
    return extreme ? (bits & 1 ? largest : -largest) : (int)(bits % (2 * (unsigned)largest + 1)) - largest;
}

/* The upper half of a float, which must have no lower one. */
static uint16_t half_of(int value)
{
    const float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static int value_of(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return (int)number;
}

/* Puts `value` where element number `at` of x lies, or of w. */
static void put(const product_case *c, bool weight, size_t at, int value)
{
    unsigned char *memory = weight ? c->w : c->x;
    if (c->type->behind > 0)
        memory[at] = (unsigned char)(weight ? value + c->type->offset : value);
    else
        ((uint16_t *)(void *)memory)[at] = half_of(value);
}

static int get(const product_case *c, bool weight, size_t at)
{
    const unsigned char *memory = weight ? c->w : c->x;
    if (c->type->behind == 0)
        return value_of(((const uint16_t *)(const void *)memory)[at]);
    return weight ? memory[at] - c->type->offset : (int8_t)memory[at];
}

/* Words of scales and minima of a group of a panel, and all of its words. */
static size_t first_word(const product_case *c)
{
    return c->type->scales * PANEL / 2;
}

static size_t group_words(const product_case *c)
{
    return first_word(c) + PANEL * GROUP * c->type->bits / 32;
}

/* Words of weights of a panel. */
static size_t panel_words(const product_case *c)
{
    return in_groups(c) ? c->groups * group_words(c) : c->words * PANEL;
}

/* Weights in groups, all of random bits: also of inputs that there are not. */
static void draw_groups(const product_case *c, random_state *random)
{
    uint32_t *words = c->w;
    const size_t groups = c->panels * panel_words(c) / group_words(c);
    for (size_t g = 0; g < groups; ++g, words += group_words(c)) {
        uint16_t *const scales = (uint16_t *)(void *)words;
        for (size_t i = first_word(c); i < group_words(c); ++i)
            words[i] = (uint32_t)random_bits(random);
        for (size_t o = 0; o < PANEL; ++o) {
            scales[o] = (g + o) % 2 ? 0x4000 : 0x3c00; /* 2, and 1 */
            if (c->type->scales > 1)
                scales[PANEL + o] = o % 2 ? 0xc700 : 0xc800; /* -7, and -8 */
        }
    }
}

/* What weight number i of output o is, times its scale, with its minimum. */
static int in_group(const product_case *c, size_t o, size_t i)
{
    const size_t group = o / PANEL * (panel_words(c) / group_words(c)) + i / GROUP;
    const uint32_t *words = (const uint32_t *)c->w + group * group_words(c);
    const size_t bits = c->type->bits, of_word = 32 / bits;
    const uint32_t word = words[first_word(c) + i % GROUP / of_word * PANEL + o % PANEL] >> (i % 4 * 8 + i % of_word / 4 * 4);
    const int units = (int)(word & ((1u << bits) - 1)), scale = (group + o % PANEL) % 2 ? 2 : 1;
    return c->type->scales > 1 ? units * scale - (o % 2 ? 7 : 8) : (units - (1 << (bits - 1))) * scale;
}

static int inputs(lua_State *L)
{
    product_case c = case_at(L);
    random_state random = random_seed((uint64_t)luaL_checkinteger(L, 5));
    const size_t x_bytes = ((c.tokens - 1) * c.x_step + c.words + c.type->behind + c.groups) * sizeof(uint32_t);
    const size_t weights = c.panels * c.words * PANEL * c.type->per_word, w_bytes = c.panels * panel_words(&c) * sizeof(uint32_t);
    const bool extreme = c.tokens == EXTREME_TOKENS;
    const float unit = 1.0f;
    uint32_t *x = lua_newuserdatauv(L, x_bytes, 0);
    memset(x, 0, x_bytes);
    c.x = x;
    c.w = lua_newuserdatauv(L, w_bytes, 0);
    for (size_t t = 0; t < c.tokens; ++t) {
        uint32_t start = 0;
        for (size_t i = 0; i < c.inputs; ++i) {
            const int value = drawn(c.type->largest, &random, extreme);
            put(&c, false, t * c.x_step * c.type->per_word + i, value);
            start -= (uint32_t)(c.type->offset * value);
            if (in_groups(&c)) { /* -8 times the sum of two inputs of each word, and of the others */
                uint16_t *halves = (uint16_t *)(void *)(x + t * c.x_step + c.words + c.type->behind);
                halves[i / GROUP * 2 + i % 4 / 2] -= (uint16_t)(8 * value);
            }
        }
        if (c.type->behind > 0) {
            x[t * c.x_step + c.words] = start;
            memcpy(x + t * c.x_step + c.words + 1, &unit, sizeof unit);
        }
    }
    if (in_groups(&c))
        draw_groups(&c, &random);
    for (size_t i = 0; !in_groups(&c) && i < weights; ++i)
        put(&c, true, i, drawn(c.type->largest, &random, extreme));
    lua_pushlstring(L, c.x, x_bytes);
    lua_pushlstring(L, c.w, w_bytes);
    lua_pushinteger(L, (lua_Integer)c.x_step);
    return 3;
}

static int fault(lua_State *L)
{
    product_case c = case_at(L);
    c.x = (void *)(uintptr_t)luaL_checkstring(L, 5);
    c.w = (void *)(uintptr_t)luaL_checkstring(L, 6);
    const float *y = (const float *)(const void *)luaL_checkstring(L, 7);
    const size_t y_step = (size_t)luaL_checkinteger(L, 8), per_word = c.type->per_word;
    for (size_t t = 0; t < c.tokens; ++t) {
        for (size_t o = 0; o < c.panels * PANEL; ++o) {
            int64_t sum = 0;
            for (size_t i = 0; i < c.inputs; ++i) {
                const size_t word = (o / PANEL * c.words + i / per_word) * PANEL + o % PANEL;
                const int weight = in_groups(&c) ? in_group(&c, o, i) : get(&c, true, word * per_word + i % per_word);
                sum += (int64_t)get(&c, false, t * c.x_step * per_word + i) * weight;
            }
            const float wanted = (float)sum, found = y[t * y_step + o];
            char text[256];
            if (found == wanted)
                continue;
            snprintf(text, sizeof text, "%zu inputs: output %zu of token %zu of %zu is %.9g instead of %.9g", c.inputs, o, t, c.tokens,
                     (double)found, (double)wanted);
            lua_pushstring(L, text);
            return 1;
        }
    }
    return 0;
}

int luaopen_exact_products(lua_State *L)
{
    static const luaL_Reg functions[] = {{"inputs", inputs}, {"fault", fault}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
