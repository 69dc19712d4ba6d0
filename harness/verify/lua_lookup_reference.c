/* Lua module `lookup_reference`: what the reference has to say of a LookupFFN's tokens, and how a kernel's codes, scores and outputs
   compare with it.

   lookup_reference.open{
        model = { d, d_out, h, tau, neighbours, projection = "bh4"|"dense", block, decay, score = "gelu"|…, scale = number,
                  norm_eps = number or nil },
        weights = path of safetensors, prefix = "", blocks_in_out = false, blob = path,
        form = a name of reference_form_at (absent: the projection as it is),
        tables, projection = names of types that the reference knows (harness/reference/type.c), seed = 1,
    } -> what all variants of the model with these weights are compared with | nil, message

   reference:extend(tokens) -> true | nil, message: so many random tokens are computed; they are made once, for all processes to come
   reference:facts() -> { scored, weighted (whether scores have a factor of their own; whether rows have one at all), multiplications (of a
   token's), moved_share (see sample.h), seed, blob (its address), blob_bytes }
   reference:sample(kind, tokens) -> the first so many tokens: "random"; "exact", these by the checkpoint's own weights; or "special", all

   Codes and scores are strings of uint16 and float32, [tokens][slots]; x and y are strings of float32. Methods of samples, see sample.h:
   s:x(tokens), s:looked(tokens) -> codes, scores: of so many tokens, over and over; s:y(tokens): the same in float64
   s:taken(codes) -> the sample with a kernel's codes; rows outside the tables cannot be looked up and become others
   s:is_near(token), s:flips(exact): codes that are not among the best of `exact`
   s:compare(y, only_gather, tally), s:compare_hash(codes, scores, tally, right): what equals `right`, scores that were found right with the
   sample's codes, is right; nil: none were

   lookup_reference.tally() -> zeros; its fields: those of hash_tally and sample_tally
   lookup_reference.special_tokens, lookup_reference.special_name(token) -> text, lookup_reference.tolerance, lookup_reference.same_rounding
   lookup_reference.tiles(text, size, slots, tile, padding) -> elements of so many bytes as kernels have them, [ceil(tokens /
   tile)][slots][tile] lookup_reference.rows(text, size, slots, tile, tokens) -> the opposite lookup_reference.distance(a, b) -> |a - b|,
   |b| */
#include "harness/base/modules.h"
#include "harness/reference/fields.h"
#include "harness/verify/hash_tally.h"
#include "harness/verify/prepared.h"

#include "gen/host/fields.h"
#include "gen/host/host.h"
#include "harness/base/memory.h"

#include <lauxlib.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "lookup_reference: ";

#define REFERENCE "lookup_reference.open"
#define SAMPLE "lookup_reference.sample"
#define TALLY "lookup_reference.tally"

enum { ERROR_SIZE = 1024 };

typedef struct {
    hash_tally hash;
    sample_tally y;
} tally;

/* Raises the line that says so. */
static void need(lua_State *L, bool done)
{
    if (!done) {
        lua_pushstring(L, "verify: not enough memory, or a table with a value that is not finite");
        lua_error(L);
    }
}

static const sample *sample_at(lua_State *L, int index)
{
    return luaL_checkudata(L, index, SAMPLE);
}

static size_t slots_of(const sample *s)
{
    return s->model->h * s->model->neighbours;
}

static size_t size_at(lua_State *L, int index)
{
    return (size_t)luaL_checkinteger(L, index);
}

/* The string at `index`, which must have `bytes` for each of some tokens. A string of Lua is aligned to 8 bytes. */
static const void *tokens_at(lua_State *L, int index, size_t bytes, size_t *tokens)
{
    size_t size;
    const char *text = luaL_checklstring(L, index, &size);
    luaL_argcheck(L, size % bytes == 0, index, "must be whole tokens");
    *tokens = size / bytes;
    return text;
}

static int open_reference(lua_State *L)
{
    lua_settop(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "model");
    const reference_model model = reference_model_at(L, 2, where);
    const verify_sources sources = {
        .blob = field_text(L, 1, where, "blob", NULL),
        .weights = field_text(L, 1, where, "weights", NULL),
        .prefix = field_text(L, 1, where, "prefix", ""),
        .blocks_in_out = field_flag(L, 1, "blocks_in_out"),
        .form = reference_form_at(L, 1),
        .byte_scores = field_flag(L, 1, "byte_scores"),
        .tables = reference_type_at(L, 1, where, "tables", REFERENCE_TABLES),
        .projection = reference_type_at(L, 1, where, "projection", REFERENCE_PROJECTION),
    };
    const uint64_t seed = (uint64_t)field_integer(L, 1, where, "seed", LUA_MININTEGER, 1);
    verify_reference *reference = lua_newuserdatauv(L, sizeof *reference, 1);
    *reference = (verify_reference){.seed = 0};
    luaL_setmetatable(L, REFERENCE);
    lua_pushvalue(L, 1); /* it keeps the prefix */
    lua_setiuservalue(L, -2, 1);
    char error[ERROR_SIZE];
    return verify_reference_open(reference, &model, seed, &sources, error, sizeof error) ? 1 : host_fail(L, error);
}

static int close_reference(lua_State *L)
{
    verify_reference_close(luaL_checkudata(L, 1, REFERENCE));
    return 0;
}

static int extend(lua_State *L)
{
    char error[ERROR_SIZE];
    if (!verify_reference_extend(luaL_checkudata(L, 1, REFERENCE), size_at(L, 2), error, sizeof error))
        return host_fail(L, error);
    lua_pushboolean(L, true);
    return 1;
}

static int facts(lua_State *L)
{
    const verify_reference *r = luaL_checkudata(L, 1, REFERENCE);
    const reference_model *model = &r->model;
    const bool scored = reference_is_scored(model);
    lua_createtable(L, 0, 7);
    field_set_size(L, "seed", r->seed);
    field_set_size(L, "multiplications", reference_projection_count(model) + model->h * model->neighbours * model->d_out);
    field_set_size(L, "blob", (uintptr_t)r->blob.data);
    field_set_size(L, "blob_bytes", r->blob.bytes);
    field_set_flag(L, "scored", scored);
    field_set_flag(L, "weighted", scored || r->weights.row_scale);
    field_set_number(L, "moved_share", sample_moved_share(&r->weights));
    return 1;
}

/* Whether rounding may change a code of the token. */
static bool near(const sample *s, size_t token)
{
    for (size_t table = 0; table < s->model->h; ++table)
        if (s->near[token * s->model->h + table])
            return true;
    return false;
}

/* Pushes room for a sample that keeps what is at index 1. */
static sample *new_sample(lua_State *L)
{
    sample *s = lua_newuserdatauv(L, sizeof *s, 1);
    *s = (sample){0};
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, SAMPLE);
    return s;
}

static int make_sample(lua_State *L)
{
    static const char *const kinds[] = {"random", "exact", "special", NULL};
    const verify_reference *r = luaL_checkudata(L, 1, REFERENCE);
    const sample *const all[] = {&r->random, verify_reference_exact(r), &r->special};
    const sample *from = all[luaL_checkoption(L, 2, NULL, kinds)];
    const size_t tokens = (size_t)luaL_optinteger(L, 3, (lua_Integer)from->tokens);
    luaL_argcheck(L, tokens <= from->tokens, 3, "are not computed");
    sample *s = new_sample(L);
    *s = *from;
    s->tokens = tokens;
    return 1;
}

static int taken(lua_State *L)
{
    const sample *from = sample_at(L, 1);
    size_t tokens;
    const uint16_t *codes = tokens_at(L, 2, slots_of(from) * sizeof *codes, &tokens);
    luaL_argcheck(L, tokens == from->tokens, 2, "must be of all tokens");
    sample *s = new_sample(L);
    size_t *inside = lua_newuserdatauv(L, tokens * slots_of(from) * sizeof *inside, 0);
    for (size_t i = 0; i < tokens * slots_of(from); ++i)
        inside[i] = codes[i] & (((size_t)1 << from->model->tau) - 1);
    need(L, sample_with_codes(s, from, inside));
    lua_pop(L, 1);
    return 1;
}

/* Pushes rows of `bytes` of the sample, over and over, for so many tokens. */
static void push_repeated(lua_State *L, const sample *s, const void *rows, size_t bytes, size_t tokens)
{
    luaL_Buffer buffer;
    char *to = luaL_buffinitsize(L, &buffer, tokens * bytes + 1);
    for (size_t token = 0; token < tokens; ++token)
        memcpy(to + token * bytes, (const char *)rows + token % s->tokens * bytes, bytes);
    luaL_pushresultsize(&buffer, tokens * bytes);
}

static int push_x(lua_State *L)
{
    const sample *s = sample_at(L, 1);
    push_repeated(L, s, s->x, s->model->d * sizeof *s->x, size_at(L, 2));
    return 1;
}

static int push_y(lua_State *L)
{
    const sample *s = sample_at(L, 1);
    push_repeated(L, s, s->y, s->model->d_out * sizeof *s->y, size_at(L, 2));
    return 1;
}

static int looked(lua_State *L)
{
    const sample *s = sample_at(L, 1);
    const size_t slots = slots_of(s), count = s->tokens * slots, tokens = size_at(L, 2);
    uint16_t *codes = lua_newuserdatauv(L, count * sizeof *codes, 0);
    float *scores = lua_newuserdatauv(L, count * sizeof *scores, 0);
    for (size_t i = 0; i < count; ++i) {
        codes[i] = (uint16_t)s->code[i];
        scores[i] = (float)(s->score[i] * s->row_scale[i]);
    }
    push_repeated(L, s, codes, slots * sizeof *codes, tokens);
    push_repeated(L, s, scores, slots * sizeof *scores, tokens);
    return 2;
}

static int is_near(lua_State *L)
{
    lua_pushboolean(L, near(sample_at(L, 1), size_at(L, 2)));
    return 1;
}

static int flips(lua_State *L)
{
    const sample *s = sample_at(L, 1), *exact = sample_at(L, 2);
    const size_t m = s->model->neighbours, count = s->tokens * slots_of(s);
    size_t found = 0;
    for (size_t at = 0; at < count; ++at) {
        bool best = false;
        for (size_t n = at / m * m; n < at / m * m + m; ++n)
            best = best || exact->code[n] == s->code[at];
        found += best ? 0 : 1;
    }
    lua_pushinteger(L, (lua_Integer)found);
    return 1;
}

static int compare(lua_State *L)
{
    const sample *s = sample_at(L, 1);
    size_t tokens;
    const float *y = tokens_at(L, 2, s->model->d_out * sizeof *y, &tokens);
    need(L, sample_compare(s, y, tokens, lua_toboolean(L, 3), &((tally *)luaL_checkudata(L, 4, TALLY))->y));
    return 0;
}

static int compare_hash(lua_State *L)
{
    const sample *s = sample_at(L, 1);
    const size_t slots = slots_of(s);
    size_t tokens, scored, all;
    const uint16_t *codes = tokens_at(L, 2, slots * sizeof *codes, &tokens);
    const float *scores = tokens_at(L, 3, slots * sizeof *scores, &scored), *right = NULL;
    hash_tally *to = &((tally *)luaL_checkudata(L, 4, TALLY))->hash;
    if (!lua_isnoneornil(L, 5))
        right = tokens_at(L, 5, slots * sizeof *right, &all);
    luaL_argcheck(L, scored == tokens && (!right || all == s->tokens), 3, "must be of all tokens");
    size_t *code = lua_newuserdatauv(L, slots * sizeof *code, 0);
    bool *seen = lua_newuserdatauv(L, sizeof *seen << s->model->tau, 0);
    memset(seen, 0, sizeof *seen << s->model->tau);
    for (size_t i = 0; i < tokens; ++i, codes += slots, scores += slots) {
        const size_t token = i % s->tokens, at = token * slots;
        for (size_t slot = 0; slot < slots; ++slot)
            code[slot] = codes[slot];
        if (right && memcmp(code, s->code + at, slots * sizeof *code) == 0 && memcmp(scores, right + at, slots * sizeof *scores) == 0)
            to->compared += slots;
        else
            hash_compare(s, token, code, scores, seen, to);
    }
    return 0;
}

static int close_sample(lua_State *L)
{
    sample *s = luaL_checkudata(L, 1, SAMPLE);
    lua_getiuservalue(L, 1, 1);
    if (luaL_testudata(L, -1, SAMPLE)) { /* with answers of its own */
        s->x = NULL;
        s->z = s->bound = s->most_cost = NULL;
        s->near = NULL;
        sample_free(s);
    }
    return 0;
}

static int make_tally(lua_State *L)
{
    *(tally *)lua_newuserdatauv(L, sizeof(tally), 0) = (tally){0};
    luaL_setmetatable(L, TALLY);
    return 1;
}

static int tally_field(lua_State *L)
{
    const tally *t = luaL_checkudata(L, 1, TALLY);
    const char *name = luaL_checkstring(L, 2);
    const struct {
        const char *name;
        double value;
        bool counts;
    } all[] = {{"codes", (double)t->hash.compared, true},
               {"flips", (double)t->hash.flips, true},
               {"within", (double)t->hash.within, true},
               {"wrong_codes", (double)t->hash.wrong_codes, true},
               {"wrong_scores", (double)t->hash.wrong_scores, true},
               {"worst_score", t->hash.worst_score, false},
               {"compared", (double)t->y.compared, true},
               {"wrong", (double)t->y.wrong, true},
               {"excused", (double)t->y.excused, true},
               {"moved", (double)t->y.moved, true},
               {"first_wrong", (double)t->y.first_wrong, true},
               {"first_error", t->y.first_error, false},
               {"worst", t->y.worst, false},
               {"worst_absolute", t->y.worst_absolute, false}};
    lua_settop(L, 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        if (strcmp(name, all[i].name) == 0 && all[i].counts)
            lua_pushinteger(L, (lua_Integer)all[i].value);
        else if (strcmp(name, all[i].name) == 0)
            lua_pushnumber(L, all[i].value);
    if (lua_gettop(L) == 0)
        lua_pushstring(L, strcmp(name, "first_code") == 0 ? t->hash.first_code : t->hash.first_score);
    return 1;
}

static int special_name(lua_State *L)
{
    lua_pushstring(L, sample_special_name(size_at(L, 1)));
    return 1;
}

/* Between [tokens][slots] and [ceil(tokens / tile)][slots][tile]. */
static int rearrange(lua_State *L, bool to_tiles)
{
    size_t bytes;
    const char *from = luaL_checklstring(L, 1, &bytes);
    const size_t size = size_at(L, 2), slots = size_at(L, 3), tile = size_at(L, 4), given = bytes / size / slots;
    const size_t tokens = to_tiles ? given : size_at(L, 5), made = (to_tiles ? round_up(tokens, tile) : tokens) * slots * size;
    luaL_argcheck(L, tokens <= given, 5, "are not there");
    luaL_Buffer buffer;
    char *to = luaL_buffinitsize(L, &buffer, made + 1);
    memset(to, to_tiles ? (int)luaL_checkinteger(L, 5) : 0, made);
    for (size_t i = 0; i < tokens * slots; ++i) {
        const size_t token = i / slots, place = (token / tile * slots + i % slots) * tile + token % tile;
        memcpy(to + (to_tiles ? place : i) * size, from + (to_tiles ? i : place) * size, size);
    }
    luaL_pushresultsize(&buffer, made);
    return 1;
}

static int tiles(lua_State *L)
{
    return rearrange(L, true);
}

static int rows(lua_State *L)
{
    return rearrange(L, false);
}

static int distance(lua_State *L)
{
    size_t count, others;
    const float *a = tokens_at(L, 1, sizeof *a, &count), *b = tokens_at(L, 2, sizeof *b, &others);
    luaL_argcheck(L, count == others, 2, "must be as many");
    double error = 0.0, power = 0.0;
    for (size_t i = 0; i < count; ++i) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        power += (double)b[i] * (double)b[i];
    }
    lua_pushnumber(L, sqrt(error));
    lua_pushnumber(L, sqrt(power));
    return 2;
}

int luaopen_lookup_reference(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"open", open_reference}, {"tally", make_tally}, {"special_name", special_name}, {"tiles", tiles}, {"rows", rows},
        {"distance", distance},   {NULL, NULL}};
    static const luaL_Reg of_references[] = {{"extend", extend}, {"facts", facts}, {"sample", make_sample}, {NULL, NULL}};
    static const luaL_Reg of_samples[] = {{"x", push_x},        {"y", push_y},    {"looked", looked},   {"taken", taken},
                                          {"is_near", is_near}, {"flips", flips}, {"compare", compare}, {"compare_hash", compare_hash},
                                          {NULL, NULL}};
    host_class(L, REFERENCE, close_reference, of_references);
    host_class(L, SAMPLE, close_sample, of_samples);
    luaL_newmetatable(L, TALLY);
    lua_pushcfunction(L, tally_field);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    field_set_number(L, "tolerance", SAMPLE_TOLERANCE);
    field_set_number(L, "same_rounding", SAMPLE_SAME_ROUNDING);
    field_set_size(L, "special_tokens", SAMPLE_SPECIAL);
    return 1;
}
