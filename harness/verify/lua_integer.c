/* Lua module `integer_reference`: integer kernels beside their reference, and that beside the definition in float64.

   integer_reference.compare(job, called | nil, why not) -> { checks = { { name, ok, detail } }, ok, tokens, codes, code_flips, rel_err,
   rel_err_flips, max_abs_err } | nil, message. job = { d, d_out, slots (rows of a token), x_unit, y_unit, model (see fields.h), blob,
   weights, prefix, blocks_in_out, at = { section = offset }, element, pitch, seed, tokens }; called: the kernels' rows and scores
   [tokens][slots] and y [tokens][d_out], one behind the other, for the tokens of
   integer_reference.tokens(d, whether they are normalised, seed, count) -> int16 [special + count][d], special ones first.
   rel_err is the largest relative error of a token's y against the definition with the kernel's codes, rel_err_flips against the definition
   with its own. max_abs_err is of one element, with the kernel's codes.
   integer_reference.vectors(job, count) -> { { x = { numbers }, y = { numbers } }, ... } | nil, message
   integer_reference.units(rows, unit) -> int16; integer_reference.values(string of int32, unit) -> rows of float32 */
#include "harness/base/modules.h"
#include "harness/reference/checkpoint.h"
#include "harness/reference/fields.h"
#include "harness/reference/integer.h"

#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/weights/random.h"

#include <lauxlib.h>

#include <math.h>
#include <stdio.h>

static const char where[] = "integer_reference: ";

enum { ERROR_SIZE = 4096 + 256, SPECIAL = 8 };

typedef struct {
    const char *blob;
    size_t d, d_out, slots;
    double x_unit, y_unit;
} kernel_job;

static double number_field(lua_State *L, int index, const char *name)
{
    lua_getfield(L, index, name);
    const double value = luaL_checknumber(L, -1);
    lua_pop(L, 1);
    return value;
}

static size_t size_field(lua_State *L, int index, const char *name)
{
    return (size_t)field_integer(L, index, where, name, 0, -1);
}

static kernel_job job_at(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    return (kernel_job){.blob = field_text(L, index, where, "blob", NULL),
                        .d = size_field(L, index, "d"),
                        .d_out = size_field(L, index, "d_out"),
                        .slots = size_field(L, index, "slots"),
                        .x_unit = number_field(L, index, "x_unit"),
                        .y_unit = number_field(L, index, "y_unit")};
}

/* row and score [tokens][slots], y [tokens][d_out], one behind the other */
typedef struct {
    uint32_t *row;
    int32_t *score, *y;
} results;

static results results_in(const void *memory, const kernel_job *job, size_t tokens)
{
    uint32_t *row = (uint32_t *)(uintptr_t)memory;
    int32_t *score = (int32_t *)(void *)(row + tokens * job->slots);
    return (results){row, score, score + tokens * job->slots};
}

static size_t results_bytes(const kernel_job *job, size_t tokens)
{
    return tokens * (2 * job->slots + job->d_out) * sizeof(int32_t);
}

/* Tokens out of the ordinary, then random ones: normal, of sizes from a hundredth of the range to a third where they are normalised, else
   of an eighth, rounded and limited to int16. */
static void fill_tokens(const reference_model *model, uint64_t seed, size_t tokens, int16_t *x)
{
    random_state random = random_seed(seed);
    for (size_t token = 0; token < tokens; ++token) {
        const double size = model->norm ? 32768.0 * 0.01 * pow(33.0, random_uniform(&random)) : 4096.0;
        const double offset = model->norm ? size * random_normal(&random) : 0.0;
        for (size_t i = 0; i < model->d; ++i) {
            const double value = token == 0   ? 0.0
                                 : token == 1 ? 32767.0
                                 : token == 2 ? -32768.0
                                 : token == 3 ? (i % 2 ? 32767.0 : -32768.0)
                                 : token == 4 ? (i == 0 ? 32767.0 : -32768.0)
                                 : token == 5 ? (i == 0 ? 1.0 : 0.0)
                                 : token == 6 ? (random_bits(&random) & 1 ? 32767.0 : -32768.0)
                                 : token == 7 ? (double)(random_bits(&random) & 3)
                                              : rint(size * random_normal(&random) + offset);
            x[token * model->d + i] = (int16_t)fmin(fmax(value, -32768.0), 32767.0);
        }
    }
}

/* The tokens that the job in argument 1 asks for, in memory that Lua frees. */
static int16_t *tokens_at(lua_State *L, const reference_model *model, size_t tokens)
{
    int16_t *x = lua_newuserdatauv(L, tokens * model->d * sizeof *x + 1, 0);
    fill_tokens(model, (uint64_t)field_integer(L, 1, where, "seed", LUA_MININTEGER, 1), tokens, x);
    return x;
}

static void push_check(lua_State *L, int list, const char *name, bool ok, const char *detail)
{
    lua_newtable(L);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lua_pushboolean(L, ok);
    lua_setfield(L, -2, "ok");
    lua_pushstring(L, detail);
    lua_setfield(L, -2, "detail");
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
}

/* The section's place in the blob; NULL without one. */
static const void *section_at(lua_State *L, int job, const files_mapping *blob, const char *name)
{
    lua_getfield(L, job, "at");
    const bool there = lua_getfield(L, -1, name) != LUA_TNIL;
    const size_t at = (size_t)lua_tointeger(L, -1);
    lua_pop(L, 2);
    luaL_argcheck(L, at < blob->bytes, 1, name);
    return there ? (const unsigned char *)blob->data + at : NULL;
}

/* What the job in argument 1 says of the blob. */
static integer_weights weights_at(lua_State *L, const kernel_job *job, const reference_model *model, const files_mapping *blob)
{
    return (integer_weights){.model = model,
                             .x_unit = job->x_unit,
                             .element = size_field(L, 1, "element"),
                             .pitch = size_field(L, 1, "pitch"),
                             .projection = section_at(L, 1, blob, "projection"),
                             .multipliers = section_at(L, 1, blob, "multipliers"),
                             .residual = section_at(L, 1, blob, "residual"),
                             .shifts = section_at(L, 1, blob, "shifts"),
                             .projection_bias = section_at(L, 1, blob, "projection_bias"),
                             .bias = section_at(L, 1, blob, "bias"),
                             .table_scales = section_at(L, 1, blob, "table_scales"),
                             .tables = section_at(L, 1, blob, "tables")};
}

typedef struct {
    size_t flips;
    double same_codes, own_codes, element;
} comparison;

static double relative_error(const int32_t *y, double unit, const double *expected, size_t count, double *element)
{
    double error = 0.0, power = 0.0;
    for (size_t o = 0; o < count; ++o) {
        const double difference = y[o] * unit - expected[o];
        error += difference * difference;
        power += expected[o] * expected[o];
        *element = fmax(*element, fabs(difference));
    }
    return power > 0.0 ? sqrt(error / power) : error > 0.0 ? INFINITY : 0.0;
}

/* The code of a table's row number n by the definition: the second differs from the best in the bit of the least |z|. */
static size_t best_code(const reference_model *model, const double *z, size_t n)
{
    size_t least = 0;
    for (size_t j = 1; j < model->tau; ++j)
        least = fabs(z[j]) < fabs(z[least]) ? j : least;
    return reference_code(model, z) ^ n << (model->tau - 1 - least);
}

/* Compares a token with the definition. memory [2 d + h tau + slots + d_out] */
static bool compare_token(const kernel_job *job, const reference_model *model, const reference_weights *weights, const int16_t *x,
                          const uint32_t *row, const int32_t *y, double *memory, size_t *code, comparison *all)
{
    double *real = memory, *normalised = real + model->d, *z = normalised + model->d, *score = z + model->h * model->tau,
           *expected = score + job->slots;
    const size_t m = model->neighbours;
    double ignored = 0.0;
    for (size_t i = 0; i < model->d; ++i)
        real[i] = x[i] * job->x_unit;
    reference_norm(model, weights, real, normalised);
    if (!reference_project(model, weights, normalised, z))
        return false;
    for (int own = 1; own >= 0; --own) {
        for (size_t slot = 0; slot < job->slots; ++slot) {
            const double *bits = z + slot / m * model->tau;
            const size_t taken = row[slot] & (((size_t)1 << model->tau) - 1);
            all->flips += own && taken != best_code(model, bits, 0) && taken != best_code(model, bits, m - 1) ? 1 : 0;
            code[slot] = own ? best_code(model, bits, slot % m) : taken;
            score[slot] = reference_score(model, bits, code[slot]);
        }
        if (!reference_gather(model, weights, code, score, expected))
            return false;
        if (own)
            all->own_codes = fmax(all->own_codes, relative_error(y, job->y_unit, expected, model->d_out, &ignored));
        else
            all->same_codes = fmax(all->same_codes, relative_error(y, job->y_unit, expected, model->d_out, &all->element));
    }
    return true;
}

static int compare(lua_State *L)
{
    lua_settop(L, 3);
    const kernel_job job = job_at(L, 1);
    const char *made = lua_tostring(L, 2), *message = lua_tostring(L, 3);
    lua_getfield(L, 1, "model");
    const reference_model model = reference_model_at(L, 4, where);
    const size_t random = size_field(L, 1, "tokens"), tokens = SPECIAL + random;
    char error[ERROR_SIZE];
    files_mapping blob;
    lua_getfield(L, 1, "blocks_in_out");
    checkpoint *file = checkpoint_open(&model, field_text(L, 1, where, "weights", NULL), field_text(L, 1, where, "prefix", ""),
                                       lua_toboolean(L, -1), error, sizeof error);
    if (!file)
        return host_fail(L, error);
    if (!files_map(job.blob, &blob, error, sizeof error)) {
        checkpoint_close(file);
        return host_fail(L, error);
    }
    const integer_weights weights = weights_at(L, &job, &model, &blob);
    const int16_t *x = tokens_at(L, &model, tokens);
    void *own = lua_newuserdatauv(L, results_bytes(&job, tokens), 0);
    double *memory = lua_newuserdatauv(L, (2 * model.d + model.h * model.tau + job.slots + model.d_out) * sizeof *memory, 0);
    size_t *code = lua_newuserdatauv(L, job.slots * sizeof *code, 0);
    const results got = made ? results_in(made, &job, tokens) : (results){0}, expected = results_in(own, &job, tokens);
    comparison all = {0};
    bool ok = made != NULL;
    lua_newtable(L);
    const int to = lua_gettop(L);
    lua_newtable(L);
    const int checks = lua_gettop(L);
    push_check(L, checks, "calls", ok, ok ? "one token, all of them, and none" : message);
    size_t rows = 0, scores = 0, values = 0;
    bool in_range = true;
    for (size_t token = 0; ok && in_range && token < tokens; ++token) {
        uint32_t *row = expected.row + token * job.slots;
        int32_t *score = expected.score + token * job.slots, *y = expected.y + token * model.d_out;
        in_range = reference_integer(&weights, x + token * model.d, row, score, y, error, sizeof error);
        for (size_t slot = 0; slot < job.slots; ++slot) {
            rows += row[slot] != got.row[token * job.slots + slot] ? 1 : 0;
            scores += score[slot] != got.score[token * job.slots + slot] ? 1 : 0;
        }
        for (size_t o = 0; o < model.d_out; ++o)
            values += y[o] != got.y[token * model.d_out + o] ? 1 : 0;
        if (in_range && token >= SPECIAL)
            in_range = compare_token(&job, &model, checkpoint_weights(file), x + token * model.d, row, y, memory, code, &all) ||
                       files_error(error, sizeof error, "not enough memory, or a table with a value that is not finite");
    }
    char detail[256];
    if (ok) {
        push_check(L, checks, "ranges", in_range, in_range ? "every value fits its type" : error);
        snprintf(detail, sizeof detail, "%zu of %zu codes, %zu scores and %zu of %zu outputs differ from the reference's", rows,
                 tokens * job.slots, scores, values, tokens * model.d_out);
        push_check(L, checks, "integers", rows + scores + values == 0, detail);
        ok = in_range && rows + scores + values == 0;
    }
    files_unmap(&blob);
    checkpoint_close(file);
    lua_setfield(L, to, "checks");
    lua_pushboolean(L, ok);
    lua_setfield(L, to, "ok");
    const struct {
        const char *name;
        size_t value;
    } counts[] = {{"tokens", tokens}, {"codes", random * job.slots}, {"code_flips", all.flips}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
        lua_pushinteger(L, (lua_Integer)counts[i].value);
        lua_setfield(L, to, counts[i].name);
    }
    lua_pushnumber(L, all.same_codes);
    lua_setfield(L, to, "rel_err");
    lua_pushnumber(L, all.own_codes);
    lua_setfield(L, to, "rel_err_flips");
    lua_pushnumber(L, all.element);
    lua_setfield(L, to, "max_abs_err");
    return 1;
}

static int tokens(lua_State *L)
{
    const reference_model model = {.d = (size_t)luaL_checkinteger(L, 1), .norm = lua_toboolean(L, 2)};
    const size_t count = SPECIAL + (size_t)luaL_checkinteger(L, 4);
    luaL_Buffer buffer;
    int16_t *x = (int16_t *)(void *)luaL_buffinitsize(L, &buffer, count * model.d * sizeof *x);
    fill_tokens(&model, (uint64_t)luaL_checkinteger(L, 3), count, x);
    luaL_pushresultsize(&buffer, count * model.d * sizeof *x);
    return 1;
}

static int units(lua_State *L)
{
    size_t bytes;
    const float *x = (const float *)(const void *)luaL_checklstring(L, 1, &bytes);
    const double unit = luaL_checknumber(L, 2);
    luaL_Buffer buffer;
    int16_t *to = (int16_t *)(void *)luaL_buffinitsize(L, &buffer, bytes / 2 + 1);
    for (size_t i = 0; i < bytes / sizeof *x; ++i)
        to[i] = x[i] == x[i] ? (int16_t)fmin(fmax(rint(x[i] / unit), -32768.0), 32767.0) : 0;
    luaL_pushresultsize(&buffer, bytes / 2);
    return 1;
}

static int values(lua_State *L)
{
    size_t bytes;
    const int32_t *y = (const int32_t *)(const void *)luaL_checklstring(L, 1, &bytes);
    const double unit = luaL_checknumber(L, 2);
    luaL_Buffer buffer;
    float *to = (float *)(void *)luaL_buffinitsize(L, &buffer, bytes + 1);
    for (size_t i = 0; i < bytes / sizeof *y; ++i)
        to[i] = (float)(y[i] * unit);
    luaL_pushresultsize(&buffer, bytes);
    return 1;
}

/* The last `count` of the tokens, and what the reference makes of them. */
static int vectors(lua_State *L)
{
    lua_settop(L, 2);
    const kernel_job job = job_at(L, 1);
    const size_t count = (size_t)luaL_checkinteger(L, 2), tokens = SPECIAL + count;
    lua_getfield(L, 1, "model");
    const reference_model model = reference_model_at(L, 3, where);
    char error[ERROR_SIZE];
    files_mapping blob;
    const int16_t *x = tokens_at(L, &model, tokens);
    uint32_t *row = lua_newuserdatauv(L, job.slots * sizeof *row, 0);
    int32_t *score = lua_newuserdatauv(L, job.slots * sizeof *score, 0), *y = lua_newuserdatauv(L, model.d_out * sizeof *y, 0);
    if (!files_map(job.blob, &blob, error, sizeof error))
        return host_fail(L, error);
    const integer_weights weights = weights_at(L, &job, &model, &blob);
    bool ok = true;
    lua_newtable(L);
    for (size_t token = SPECIAL; ok && token < tokens; ++token) {
        ok = reference_integer(&weights, x + token * model.d, row, score, y, error, sizeof error);
        lua_newtable(L);
        lua_newtable(L);
        for (size_t i = 0; i < model.d; ++i) {
            lua_pushinteger(L, x[token * model.d + i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_setfield(L, -2, "x");
        lua_newtable(L);
        for (size_t o = 0; o < model.d_out; ++o) {
            lua_pushinteger(L, y[o]);
            lua_rawseti(L, -2, (lua_Integer)o + 1);
        }
        lua_setfield(L, -2, "y");
        lua_rawseti(L, -2, (lua_Integer)(token - SPECIAL) + 1);
    }
    files_unmap(&blob);
    return ok ? 1 : host_fail(L, error);
}

int luaopen_integer_reference(lua_State *L)
{
    static const luaL_Reg functions[] = {{"compare", compare}, {"tokens", tokens}, {"vectors", vectors},
                                         {"units", units},     {"values", values}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
