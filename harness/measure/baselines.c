/* The Lua module `baselines`: what OpenBLAS and oneDNN do beside compiled code, each checked before.

   All functions return an address of a function, its argument, the relative error of what it computes, and the library's names of the code
   that runs; or nil and a message, an empty one where the library has no such product for this CPU. x, y, weights, q and keys are memories.

   baselines.dense{ library, type, d, hidden, d_out, seed, x, y, batch, threads }: a dense FFN with `batch` tokens, which walks through
   those of x [tokens][d]. All of a process have the same d, hidden, d_out and seed.

   baselines.product{ library, type, inputs, outputs, tokens, weights, x, y }: y = x Wᵀ; weights [outputs][inputs], x [tokens][inputs],
   numbers from 0 to 1, y [tokens][outputs].

   baselines.attention{ library, heads, kv_heads, width, layers, causal, tokens, position, q, keys, y }: attention with a score matrix; q
   and y [tokens][heads][width], keys, and behind them values, [layers][position + tokens][kv_heads][width].

   baselines.described(library, type) -> a key and what the library chose for this CPU.

   baselines.vectors(bytes): no wider ones from now on in loops that are not the libraries'. */
#include "gen/host/fields.h"
#include "harness/base/lua_compiled.h"
#include "harness/base/memory.h"
#include "harness/baseline/ffn.h"
#include "harness/baseline/products.h"
#include "harness/baseline/vectors.h"
#include "harness/measure/modules.h"

#include <lauxlib.h>

#include <stdio.h>
#include <string.h>

enum { CHECKED_TOKENS = 8, ERROR_SIZE = 512 };

static const char where[] = "baselines: ";

static const baseline_library *const ffns[] = {&baseline_openblas, &baseline_onednn, &baseline_onednn_bf16, &baseline_onednn_i8};
static const baseline_product_library *const libraries[] = {&baseline_products_openblas, &baseline_products_onednn};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const baseline_library *find_ffn(lua_State *L, const char *name, const char *type)
{
    for (size_t i = 0; i < COUNT(ffns); ++i)
        if (strcmp(ffns[i]->name, name) == 0 && strcmp(ffns[i]->type, type) == 0)
            return ffns[i];
    luaL_error(L, "there is no dense FFN %s/%s", name, type);
    return NULL;
}

static const baseline_product_library *find_library(lua_State *L)
{
    const char *name = field_text(L, 1, where, "library", NULL);
    for (size_t i = 0; i < COUNT(libraries); ++i)
        if (strcmp(libraries[i]->dense->name, name) == 0)
            return libraries[i];
    luaL_error(L, "%s: must be openblas or onednn", name);
    return NULL;
}

/* The numbers of the memory in a field. */
static float *numbers_in(lua_State *L, const char *name, size_t *count)
{
    size_t bytes;
    lua_getfield(L, 1, name);
    float *numbers = compiled_memory_at(L, -1, &bytes);
    if (count)
        *count = bytes / sizeof *numbers;
    lua_pop(L, 1);
    return numbers;
}

/* Pushes an argument that keeps the table with its memories. */
static void *push_argument(lua_State *L, size_t bytes)
{
    void *argument = lua_newuserdatauv(L, bytes, 1);
    memset(argument, 0, bytes);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    return argument;
}

static int refused(lua_State *L, const char *message)
{
    lua_pushnil(L);
    lua_pushstring(L, message);
    return 2;
}

/* Returns the function with the argument on top of the stack, behind it. */
static int checked(lua_State *L, uintptr_t (*run)(void *argument), double error, const char *implementation)
{
    compiled_push_function(L, (compiled_function *)(void (*)(void))run);
    lua_insert(L, -2);
    lua_pushnumber(L, error);
    lua_pushstring(L, implementation);
    return 4;
}

typedef struct dense_call {
    const baseline_library *library;
    const baseline_weights *weights;
    void *ffn;
    const float *pool;
    float *y;
    size_t tokens, batch, at;
} dense_call;

static uintptr_t run_dense(void *argument)
{
    dense_call *c = argument;
    const float *x = c->pool + c->at * c->weights->d;
    c->at = c->at + 2 * c->batch <= c->tokens ? c->at + c->batch : 0;
    return !c->library->run(c->ffn, x, c->y);
}

/* The largest relative error of some tokens, of one call or several; or a line in error if rounding does not explain what they are off. */
static double check_dense(const dense_call *c, char *error)
{
    double worst = 0.0;
    const size_t of_call = smaller(c->batch, CHECKED_TOKENS), calls = smaller(CHECKED_TOKENS / of_call, c->tokens / c->batch);
    for (size_t call = 0; call < calls; ++call) {
        const float *x = c->pool + call * c->batch * c->weights->d;
        if (!c->library->run(c->ffn, x, c->y))
            snprintf(error, ERROR_SIZE, "%s/%s: the library reports an error", c->library->name, c->library->type);
        for (size_t i = 0; i < of_call; ++i) {
            const size_t token = of_call > 1 ? i * (c->batch - 1) / (of_call - 1) : 0;
            const baseline_error off = baseline_check(c->library, c->weights, x, c->batch, token, c->y + token * c->weights->d_out);
            if (!(off.deviations <= BASELINE_DEVIATIONS))
                snprintf(error, ERROR_SIZE,
                         "%s/%s: %zu tokens: an output of token %zu is off by %.3g times what rounding explains: must be at most %d; "
                         "relative error %.2g",
                         c->library->name, c->library->type, c->batch, token, off.deviations, BASELINE_DEVIATIONS, off.relative);
            worst = off.relative > worst ? off.relative : worst;
        }
    }
    return worst;
}

static int dense(lua_State *L)
{
    static baseline_weights weights; /* of all */
    char error[ERROR_SIZE] = "";
    size_t count;
    const baseline_library *library = find_ffn(L, field_text(L, 1, where, "library", NULL), field_text(L, 1, where, "type", NULL));
    const size_t d = field_size(L, 1, where, "d");
    dense_call *c = push_argument(L, sizeof *c);
    *c = (dense_call){.library = library, .weights = &weights, .y = numbers_in(L, "y", NULL), .batch = field_size(L, 1, where, "batch")};
    c->pool = numbers_in(L, "x", &count);
    c->tokens = count / d;
    if (!weights.d) {
        if (!baseline_weights_create(&weights, d, field_size(L, 1, where, "hidden"), field_size(L, 1, where, "d_out"),
                                     (uint64_t)field_size(L, 1, where, "seed")))
            return luaL_error(L, "not enough memory for the dense FFN");
        baseline_weights_calibrate(&weights, c->pool, c->tokens);
    }
    c->ffn = library->create(&weights, c->batch, field_size(L, 1, where, "threads"), error, sizeof error);
    if (!c->ffn)
        return refused(L, error);
    const double off = check_dense(c, error);
    return *error ? refused(L, error) : checked(L, run_dense, off, library->implementation(c->ffn));
}

/* What a library made, and where it writes. */
typedef struct made_call {
    bool (*run)(void *made, float *y);
    void *made;
    float *y;
    baseline_matrix matrix;
    baseline_attention attention;
} made_call;

static uintptr_t run_made(void *argument)
{
    const made_call *c = argument;
    return !c->run(c->made, c->y);
}

static int product(lua_State *L)
{
    char error[ERROR_SIZE] = "";
    const baseline_product_library *library = find_library(L);
    const char *type = field_text(L, 1, where, "type", NULL);
    const size_t tokens = field_size(L, 1, where, "tokens");
    const float *x = numbers_in(L, "x", NULL);
    made_call *c = push_argument(L, sizeof *c);
    c->run = library->multiply;
    c->y = numbers_in(L, "y", NULL);
    c->matrix = (baseline_matrix){field_size(L, 1, where, "inputs"), field_size(L, 1, where, "outputs"), numbers_in(L, "weights", NULL)};
    c->made = library->product(&c->matrix, type, tokens, x, error, sizeof error);
    if (!c->made)
        return refused(L, error);
    const bool ran = run_made(c) == 0;
    const double off = baseline_product_error(&c->matrix, tokens, x, c->y), most = baseline_product_tolerance(type);
    if (!ran || !(off <= most)) {
        snprintf(error, sizeof error, "%s: %s, %zu tokens: relative error %.2g of a product: must be at most %g", library->dense->name,
                 type, tokens, off, most);
        return refused(L, error);
    }
    return checked(L, run_made, off, library->dense->implementation(c->made));
}

static int attention(lua_State *L)
{
    const double tolerance = 1e-4;
    char error[ERROR_SIZE] = "";
    const baseline_product_library *library = find_library(L);
    made_call *c = push_argument(L, sizeof *c);
    c->run = library->attend;
    c->y = numbers_in(L, "y", NULL);
    c->attention = (baseline_attention){.heads = field_size(L, 1, where, "heads"),
                                        .kv_heads = field_size(L, 1, where, "kv_heads"),
                                        .width = field_size(L, 1, where, "width"),
                                        .tokens = field_size(L, 1, where, "tokens"),
                                        .position = field_size(L, 1, where, "position"),
                                        .layers = field_size(L, 1, where, "layers"),
                                        .causal = field_flag(L, 1, "causal"),
                                        .q = numbers_in(L, "q", NULL),
                                        .keys = numbers_in(L, "keys", NULL)};
    baseline_attention *of = &c->attention;
    of->values = of->keys + of->layers * (of->position + of->tokens) * of->kv_heads * of->width;
    c->made = library->attention(of, error, sizeof error);
    if (!c->made)
        return refused(L, error);
    const bool ran = run_made(c) == 0;
    const double off = baseline_attention_error(of, c->y);
    if (!ran || !(off <= tolerance)) {
        snprintf(error, sizeof error, "%s: attention of %zu tokens: relative error %.2g: must be at most %g", library->dense->name,
                 of->tokens, off, tolerance);
        return refused(L, error);
    }
    return checked(L, run_made, off, library->dense->implementation(c->made));
}

static int described(lua_State *L)
{
    char text[256];
    const baseline_library *library = find_ffn(L, luaL_checkstring(L, 1), luaL_checkstring(L, 2));
    library->describe(text, sizeof text);
    lua_pushstring(L, library->description);
    lua_pushstring(L, text);
    return 2;
}

static int vectors(lua_State *L)
{
    vectors_limit((size_t)luaL_checkinteger(L, 1));
    return 0;
}

int luaopen_baselines(lua_State *L)
{
    static const luaL_Reg functions[] = {{"dense", dense},         {"product", product}, {"attention", attention},
                                         {"described", described}, {"vectors", vectors}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
