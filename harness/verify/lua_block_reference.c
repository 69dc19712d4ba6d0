/* Lua module `block_reference`: the reference of blocks of a transformer. Values of tokens are strings of doubles, [tokens][d].

   block_reference.answers(job, x) -> y, ties, looked | nil, message: job = { weights, type, activations, cache, attention, tables,
   projection (of lookup FFNs), d, input, heads, kv_heads, width, f, scale, soft_cap, shifted, causal, start, half, theta,
   scaling (as in model files, nothing left out; nil: none), interleaved, gated,
   parallel, skip, mean, post, unit, lsh = { tables, tau, window, eps, seed, expected }, eps, head_eps, activation, layers = { { input
   (width of its x), window, delivered, qkv, means, q = { weight = view, bias = view }, …, first = { gain, offset }, q_norm = { gain },
   lookup = { prefix, d_out } } }, lookup = model as in fields.h, margin, turned = ties, lengths = { tokens of every sequence }, seen, notes
   = a string of seen, whose codes and scores are then taken, first_looked, first_token: how many lookup FFNs and tokens there are before,
   off_from: the first token that counts in `off` }, looked = { off = the largest relative error of what they were given, missing = tokens
   of which nothing is known, inputs = the reference's own, as x
   }, views as gen/schema/checkpoint_names.lua makes them; ties = { { layer, token, table } } as in reference_block_lookup.h

   block_reference.looked(job) -> { { codes, flips, flips_explained, scores, scores_explained, wrong = message or nil }, … } | nil, message:
   how these codes and scores of each lookup FFN of the job compare with the reference's for the same inputs; see compare_lookups.h

   block_reference.random_numbers(seed, count, below) -> list

   block_reference.difference(a, b, d) -> largest relative error of a token of a, largest error of an element, relative error of all tokens
   together. A token of b whose root of the sum of squares is below 2^-100 counts as one of 2^-100: activations near 0 end where float32
   does. */
#include "harness/base/modules.h"
#include "harness/reference/fields.h"
#include "harness/reference/transformer.h"
#include "harness/verify/compare_lookups.h"
#include "harness/verify/interposed.h"
#include "harness/verify/reference_weights.h"

#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/weights/random.h"
#include "gen/weights/shards.h"

#include <lauxlib.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "block_reference: ";

enum { ERROR_SIZE = 4096 + 256 };

/* The doubles at `index` and how many tokens of d they are. */
static const double *tokens_at(lua_State *L, int index, size_t d, size_t *tokens)
{
    size_t bytes;
    const double *values = (const double *)(const void *)luaL_checklstring(L, index, &bytes);
    luaL_argcheck(L, d > 0 && bytes % (d * sizeof *values) == 0, index, "must be whole tokens");
    *tokens = bytes / (d * sizeof *values);
    return values;
}

/* The list of numbers in the field `name` of the table at `index`, kept alive by the stack. */
static size_t *numbers_at(lua_State *L, int index, const char *name, size_t *count)
{
    lua_getfield(L, index, name);
    *count = lua_istable(L, -1) ? (size_t)luaL_len(L, -1) : 0;
    size_t *numbers = lua_newuserdatauv(L, (*count + 1) * sizeof *numbers, 0);
    for (size_t i = 0; i < *count; ++i) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        numbers[i] = (size_t)luaL_checkinteger(L, -1);
        lua_pop(L, 1);
    }
    return numbers;
}

static reference_rope_scaling scaling_at(lua_State *L, int job)
{
    static const char *const kinds[] = {"plain", "linear", "llama3", "yarn", NULL};
    reference_rope_scaling scaling = {0};
    lua_getfield(L, job, "scaling");
    if (lua_istable(L, -1)) {
        const int at = lua_gettop(L);
        lua_getfield(L, at, "kind");
        scaling.kind = (reference_rope_kind)luaL_checkoption(L, -1, NULL, kinds);
        scaling.factor = field_number(L, at, where, "factor");
        scaling.original = field_number(L, at, where, "original");
        scaling.slow = field_number(L, at, where, "slow");
        scaling.fast = field_number(L, at, where, "fast");
        scaling.attention_factor = field_number(L, at, where, "attention_factor");
        scaling.truncate = field_flag(L, at, "truncate");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return scaling;
}

static reference_lsh lsh_at(lua_State *L, int job)
{
    reference_lsh lsh = {0};
    lua_getfield(L, job, "lsh");
    if (lua_istable(L, -1)) {
        const int at = lua_gettop(L);
        lsh = (reference_lsh){.tables = field_size(L, at, where, "tables"),
                              .tau = field_size(L, at, where, "tau"),
                              .window = field_size(L, at, where, "window"),
                              .eps = field_number(L, at, where, "eps"),
                              .seed = field_size(L, at, where, "seed"),
                              .expected = field_flag(L, at, "expected")};
    }
    lua_pop(L, 1);
    return lsh;
}

static reference_transformer model_at(lua_State *L, int job)
{
    const char *activation = field_text(L, job, where, "activation", NULL);
    const reference_transformer model = {
        .d = field_size(L, job, where, "d"),
        .heads = field_size(L, job, where, "heads"),
        .width = field_size(L, job, where, "width"),
        .kv_heads = field_size(L, job, where, "kv_heads"),
        .f = field_size(L, job, where, "f"),
        .scale = field_number(L, job, where, "scale"),
        .soft_cap = field_number(L, job, where, "soft_cap"),
        .shifted = field_size(L, job, where, "shifted"),
        .causal = field_flag(L, job, "causal"),
        .from_keys = field_flag(L, job, "from_keys"),
        .start = field_size(L, job, where, "start"),
        .half = field_size(L, job, where, "half"),
        .theta = field_number(L, job, where, "theta"),
        .scaling = scaling_at(L, job),
        .interleaved = field_flag(L, job, "interleaved"),
        .gated = field_flag(L, job, "gated"),
        .parallel = field_flag(L, job, "parallel"),
        .skip = field_flag(L, job, "skip"),
        .mean = field_flag(L, job, "mean"),
        .post = field_flag(L, job, "post"),
        .unit = field_flag(L, job, "unit"),
        .lsh = lsh_at(L, job),
        .eps = field_number(L, job, where, "eps"),
        .head_eps = field_number(L, job, where, "head_eps"),
        .activation = reference_activation_named(activation),
        .type = reference_type_at(L, job, where, "type", REFERENCE_WEIGHTS),
        .activations = reference_type_at(L, job, where, "activations", REFERENCE_INPUTS),
        .cache = reference_type_at(L, job, where, "cache", REFERENCE_CACHE),
        .attention = reference_type_at(L, job, where, "attention", REFERENCE_CACHE),
    };
    if (!model.activation)
        luaL_error(L, "%sactivation: %s: unknown activation", where, activation);
    return model;
}

/* The file of a checkpoint that holds the tensor `name`; NULL with one line. */
static const char *file_of(const shards *checkpoint, const char *name, char *error)
{
    for (size_t i = 0; i < shards_count(checkpoint); ++i)
        if (safetensors_find(shards_at(checkpoint, i), name))
            return safetensors_path(shards_at(checkpoint, i));
    files_error(error, ERROR_SIZE, "%s: tensor %s: is missing", safetensors_path(shards_at(checkpoint, 0)), name);
    return NULL;
}

/* What the reference of blocks is asked for, in argument 1. */
typedef struct {
    shards *checkpoint;
    reference_model lookup; /* of the lookup FFNs of all layers, if they have one, but for their d_out */
    reference_lookup_weights how;
    reference_ties ties;
    char *error; /* [ERROR_SIZE] */
} blocks_job;

/* Opens the lookup FFN of the layer at the top of the stack, if it has one. */
static bool lookup_at(lua_State *L, const blocks_job *job, reference_block_lookup **lookup)
{
    const int layer = lua_gettop(L);
    *lookup = NULL;
    if (lua_getfield(L, layer, "lookup") != LUA_TTABLE) {
        lua_pop(L, 1);
        return true;
    }
    const char *prefix = field_text(L, layer + 1, where, "prefix", NULL);
    const char *path = file_of(job->checkpoint, lua_pushfstring(L, "%stables", prefix), job->error);
    reference_model model = job->lookup;
    model.d_out = field_size(L, layer + 1, where, "d_out");
    if (path)
        *lookup = reference_block_lookup_open(&model, job->how, path, prefix, job->error, ERROR_SIZE);
    lua_settop(L, layer);
    return *lookup != NULL;
}

/* The list of ties in the field `turned`, kept alive by the stack. */
static reference_ties ties_at(lua_State *L)
{
    lua_getfield(L, 1, "turned");
    const int list = lua_gettop(L);
    const size_t count = lua_istable(L, list) ? (size_t)luaL_len(L, list) : 0;
    size_t looked_count;
    lua_getfield(L, 1, "notes");
    const reference_looked *looked = interposed_notes(L, 1, lua_gettop(L), &looked_count);
    reference_tie *ties = lua_newuserdatauv(L, (count + 1) * sizeof *ties, 0);
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        ties[i] = (reference_tie){field_size(L, -1, where, "layer"), field_size(L, -1, where, "token"), field_size(L, -1, where, "table")};
        lua_pop(L, 1);
    }
    return (reference_ties){
        .margin = field_number(L, 1, where, "margin"),
        .turned = ties,
        .turned_count = count,
        .looked = looked,
        .looked_count = looked_count,
        .looked_layer = field_size(L, 1, where, "first_looked"),
        .looked_first = field_size(L, 1, where, "first_token"),
        .looked_from = field_size(L, 1, where, "off_from"),
    };
}

/* Reads the job; what it points to is kept alive by the stack, but for the checkpoint. Pushes its layers. False with one line. */
static bool job_at(lua_State *L, blocks_job *job, char *error)
{
    *job = (blocks_job){.error = error};
    if (lua_getfield(L, 1, "lookup") == LUA_TTABLE) {
        job->lookup = reference_model_at(L, lua_gettop(L), where);
        job->how.tables = reference_type_at(L, 1, where, "tables", REFERENCE_TABLES);
        job->how.projection = reference_type_at(L, 1, where, "projection", REFERENCE_PROJECTION);
        job->how.blocks_in_out = field_flag(L, 1, "blocks_in_out");
    }
    job->ties = ties_at(L);
    job->checkpoint = shards_open(field_text(L, 1, where, "weights", NULL), error, ERROR_SIZE);
    lua_getfield(L, 1, "layers");
    return job->checkpoint != NULL;
}

static void push_ties(lua_State *L, const reference_ties *ties)
{
    lua_newtable(L);
    for (size_t i = 0; i < ties->found_count; ++i) {
        lua_createtable(L, 0, 3);
        field_set_size(L, "layer", ties->found[i].layer);
        field_set_size(L, "token", ties->found[i].token);
        field_set_size(L, "table", ties->found[i].table);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_createtable(L, 0, 3);
    lua_pushlstring(L, ties->looked_inputs ? (const char *)ties->looked_inputs : "", ties->looked_inputs_count * sizeof(double));
    lua_setfield(L, -2, "inputs");
    field_set_number(L, "off", ties->looked_off);
    field_set_size(L, "missing", ties->looked_missing);
}

/* x[tokens] <- the output of layer `number`, at the top of the stack. */
static bool run_layer(lua_State *L, blocks_job *job, const reference_transformer *model, size_t number, double *x, size_t tokens)
{
    reference_block block = {.number = number,
                             .layer = field_size(L, -1, where, "layer"),
                             .in = field_size(L, -1, where, "input"),
                             .window = field_size(L, -1, where, "window"),
                             .delivered = field_flag(L, -1, "delivered"),
                             .qkv = field_flag(L, -1, "qkv"),
                             .means = field_flag(L, -1, "means")};
    reference_map *maps[] = {&block.q, &block.k, &block.v, &block.p, &block.s, &block.g, &block.m, &block.o};
    reference_block_norm scales = {0}, shape = {0}, signs = {0};
    reference_block_norm *norms[] = {
        &block.first, &block.second, &block.after_attention, &block.after_ffn, &block.q_norm, &block.k_norm, &scales, &shape, &signs};
    static const char *const names[] = {"first", "second", "after_attention", "after_ffn", "q_norm", "k_norm", "scales", "shape", "signs"};
    reference_block_lookup *lookup;
    bool ok = lookup_at(L, job, &lookup);
    block.lookup = lookup;
    for (size_t k = 0; ok && k < sizeof maps / sizeof *maps; ++k)
        ok = reference_map_at(L, where, job->checkpoint, (const char[]){"qkvpsgmo"[k], 0}, maps[k], job->error, ERROR_SIZE);
    for (size_t k = 0; ok && k < sizeof norms / sizeof *norms; ++k)
        ok = reference_norm_at(L, where, job->checkpoint, names[k], norms[k], job->error, ERROR_SIZE);
    block.scales = scales.gain;
    block.shape = shape.gain;
    block.signs = signs.gain;
    ok = ok && reference_block_run(model, &block, &job->ties, x, tokens, job->error, ERROR_SIZE);
    reference_block_lookup_close(lookup);
    for (size_t k = 0; k < sizeof norms / sizeof *norms; ++k) {
        free(norms[k]->gain);
        free(norms[k]->offset);
    }
    return ok;
}

static int answers(lua_State *L)
{
    lua_settop(L, 2);
    char error[ERROR_SIZE];
    blocks_job job;
    reference_transformer model = model_at(L, 1);
    size_t sequences, tokens;
    const size_t *lengths = numbers_at(L, 1, "lengths", &sequences);
    model.lengths = sequences > 0 ? lengths : NULL;
    const size_t input = field_size(L, 1, where, "input"), widest = input > model.d ? input : model.d;
    const double *given = tokens_at(L, 2, input, &tokens);
    double *x = lua_newuserdatauv(L, (tokens * widest + 1) * sizeof *x, 0);
    memcpy(x, given, tokens * input * sizeof *x);
    if (!job_at(L, &job, error))
        return host_fail(L, error);
    const int layers = lua_gettop(L);
    bool ok = true;
    for (lua_Integer i = 1; ok && lua_rawgeti(L, layers, i) == LUA_TTABLE; ++i, lua_settop(L, layers))
        ok = run_layer(L, &job, &model, (size_t)i - 1, x, tokens);
    shards_close(job.checkpoint);
    if (ok) {
        lua_pushlstring(L, (const char *)x, tokens * model.d * sizeof *x);
        push_ties(L, &job.ties);
    }
    free(job.ties.found);
    free(job.ties.looked_inputs);
    return ok ? 3 : host_fail(L, error);
}

static void push_looked(lua_State *L, const looked_result *result)
{
    lua_createtable(L, 0, 6);
    field_set_size(L, "codes", result->codes);
    field_set_size(L, "flips", result->flips);
    field_set_size(L, "flips_explained", result->flips_explained);
    field_set_number(L, "scores", result->scores);
    field_set_number(L, "scores_explained", result->scores_explained);
    if (result->wrong[0])
        field_set_text(L, "wrong", result->wrong);
}

/* Adds to `all` what was found of tokens that were projected in another form. */
static void add_looked(looked_result *all, const looked_result *found)
{
    all->codes += found->codes;
    all->flips += found->flips;
    all->flips_explained += found->flips_explained;
    if (found->scores >= all->scores) {
        all->scores = found->scores;
        all->scores_explained = found->scores_explained;
    }
    if (!all->wrong[0])
        memcpy(all->wrong, found->wrong, sizeof all->wrong);
}

/* Compares own[count], of the lookup FFN of the layer at the top of the stack, each with the reference in its form, and pushes the result.
   False with one line. */
static bool compare_layer(lua_State *L, blocks_job *job, const reference_looked *own, size_t count)
{
    looked_result result = {0};
    reference_looked *some = malloc((count + 1) * sizeof *some);
    bool ok = some || files_error(job->error, ERROR_SIZE, "verify: not enough memory");
    for (int form = REFERENCE_AS_IT_IS; ok && form <= REFERENCE_BF16_INPUTS; ++form) {
        reference_block_lookup *lookup;
        looked_result found;
        size_t of_form = 0;
        for (size_t i = 0; i < count; ++i)
            if (own[i].form == (reference_form)form)
                some[of_form++] = own[i];
        if (of_form == 0)
            continue;
        job->how.form = (reference_form)form;
        ok = lookup_at(L, job, &lookup) && lookup &&
             (looked_compare(lookup, some, of_form, &found) ||
              files_error(job->error, ERROR_SIZE, "verify: not enough memory, or a table with a value that is not finite"));
        reference_block_lookup_close(lookup);
        if (ok)
            add_looked(&result, &found);
    }
    free(some);
    push_looked(L, &result);
    return ok;
}

static int looked(lua_State *L)
{
    char error[ERROR_SIZE];
    blocks_job job;
    lua_settop(L, 1);
    lua_newtable(L);
    if (!job_at(L, &job, error))
        return host_fail(L, error);
    const int layers = lua_gettop(L);
    size_t layer = job.ties.looked_layer;
    bool ok = true;
    for (lua_Integer i = 1; ok && lua_rawgeti(L, layers, i) == LUA_TTABLE; ++i, lua_settop(L, layers)) {
        if (lua_getfield(L, -1, "lookup") != LUA_TTABLE)
            continue;
        lua_pop(L, 1);
        size_t count;
        const reference_looked *own = reference_looked_of(job.ties.looked, job.ties.looked_count, layer++, &count);
        ok = compare_layer(L, &job, own, count);
        lua_rawseti(L, 2, luaL_len(L, 2) + 1);
    }
    shards_close(job.checkpoint);
    lua_settop(L, 2);
    return ok ? 1 : host_fail(L, error);
}

static int random_numbers(lua_State *L)
{
    random_state random = random_seed((uint64_t)luaL_checkinteger(L, 1));
    const lua_Integer count = luaL_checkinteger(L, 2), below = luaL_checkinteger(L, 3);
    lua_newtable(L);
    for (lua_Integer i = 1; i <= count; ++i) {
        lua_pushinteger(L, (lua_Integer)(random_bits(&random) % (uint64_t)below));
        lua_rawseti(L, -2, i);
    }
    return 1;
}

#define SMALLEST_POWER 0x1p-200

/* The larger of two numbers, or the NaN among them. */
static double larger(double a, double b)
{
    return isnan(a) || b <= a ? a : b;
}

static int difference(lua_State *L)
{
    const size_t d = (size_t)luaL_checkinteger(L, 3);
    size_t tokens, others;
    const double *a = tokens_at(L, 1, d, &tokens), *b = tokens_at(L, 2, d, &others);
    luaL_argcheck(L, tokens == others, 2, "must be as many tokens");
    double worst = 0.0, most = 0.0, all_off = 0.0, all_power = SMALLEST_POWER;
    for (size_t t = 0; t < tokens; ++t) {
        double off = 0.0, power = 0.0;
        for (size_t i = t * d; i < (t + 1) * d; ++i) {
            off += (a[i] - b[i]) * (a[i] - b[i]);
            power += b[i] * b[i];
            most = larger(most, fabs(a[i] - b[i]));
        }
        const double relative = sqrt(off / fmax(power, SMALLEST_POWER));
        worst = larger(worst, relative);
        all_off += off;
        all_power += power;
    }
    lua_pushnumber(L, worst);
    lua_pushnumber(L, most);
    lua_pushnumber(L, sqrt(all_off / all_power));
    return 3;
}

int luaopen_block_reference(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"answers", answers}, {"looked", looked}, {"random_numbers", random_numbers}, {"difference", difference}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
