/* Lua module `integer_reference`: integer kernels beside their reference, and that beside the definition in float64.

   integer_reference.compare(job, results) -> { rows, scores, values (how many differ from the reference's), range = message where a value
   does not fit its type, code_flips, rel_err, rel_err_flips, max_abs_err } | nil, message. job = { slots (rows of a token), x_unit, y_unit,
   model (see fields.h), blob, weights, prefix, blocks_in_out, at = { section = offset }, element, pitch, halves, seed, tokens }; results:
   the kernels' rows and scores [tokens][slots] and y [tokens][d_out], one behind the other, for the tokens of integer_reference.tokens(d,
   whether they are normalised, seed, count) -> int16 [special + count][d], special ones first. rel_err is the largest relative error of a
   token's y against the definition with the kernel's codes, rel_err_flips against the definition with its own. max_abs_err is of one
   element, with the kernel's codes. integer_reference.answers(job) -> y of these tokens by the reference | nil, message
   integer_reference.special: how many there are of these tokens
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

/* What a job says, and the tokens that it asks for. */
typedef struct {
    reference_model model;
    size_t slots, tokens;
    double y_unit;
    files_mapping blob;
    integer_weights weights;
    int16_t *x; /* [tokens][d] */
} integer_case;

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

/* The job in argument 1 with `count` tokens behind the special ones, whose memory Lua frees; its blob is to be unmapped. */
static bool case_at(lua_State *L, size_t count, integer_case *c, char *error)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "model");
    *c = (integer_case){.model = reference_model_at(L, lua_gettop(L), where), .tokens = SPECIAL + count};
    c->slots = field_size(L, 1, where, "slots");
    c->y_unit = field_number(L, 1, where, "y_unit");
    c->x = lua_newuserdatauv(L, c->tokens * c->model.d * sizeof *c->x + 1, 0);
    fill_tokens(&c->model, (uint64_t)field_integer(L, 1, where, "seed", LUA_MININTEGER, 1), c->tokens, c->x);
    if (!files_map(field_text(L, 1, where, "blob", NULL), &c->blob, error, ERROR_SIZE))
        return false;
    c->weights = (integer_weights){.model = &c->model,
                                   .x_unit = field_number(L, 1, where, "x_unit"),
                                   .element = field_size(L, 1, where, "element"),
                                   .pitch = field_size(L, 1, where, "pitch"),
                                   .projection = section_at(L, 1, &c->blob, "projection"),
                                   .multipliers = section_at(L, 1, &c->blob, "multipliers"),
                                   .residual = section_at(L, 1, &c->blob, "residual"),
                                   .shifts = section_at(L, 1, &c->blob, "shifts"),
                                   .projection_bias = section_at(L, 1, &c->blob, "projection_bias"),
                                   .bias = section_at(L, 1, &c->blob, "bias"),
                                   .table_scales = section_at(L, 1, &c->blob, "table_scales"),
                                   .tables = section_at(L, 1, &c->blob, "tables"),
                                   .halves = field_flag(L, 1, "halves")};
    return true;
}

/* row and score [tokens][slots], y [tokens][d_out] */
typedef struct {
    const uint32_t *row;
    const int32_t *score, *y;
} results;

/* How kernels compare with their reference, and that with the definition. */
typedef struct {
    const integer_case *of;
    const reference_weights *exact;
    double *memory; /* [2 d + h tau + slots + d_out] */
    size_t *code;   /* [slots] */
    size_t rows, scores, values, flips;
    double same_codes, own_codes, element;
} comparison;

/* Adds up what differs from the reference's of a token. */
static void count_differences(comparison *all, size_t token, const results *got, const results *expected)
{
    const size_t slots = all->of->slots, d_out = all->of->model.d_out;
    for (size_t slot = 0; slot < slots; ++slot) {
        all->rows += expected->row[slot] != got->row[token * slots + slot] ? 1 : 0;
        all->scores += expected->score[slot] != got->score[token * slots + slot] ? 1 : 0;
    }
    for (size_t o = 0; o < d_out; ++o)
        all->values += expected->y[o] != got->y[token * d_out + o] ? 1 : 0;
}

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

/* Compares the reference of a token with the definition. */
static bool compare_token(comparison *all, size_t token, const results *expected)
{
    const reference_model *model = &all->of->model;
    const int16_t *x = all->of->x + token * model->d;
    const size_t m = model->neighbours, slots = all->of->slots;
    double *real = all->memory, *normalised = real + model->d, *z = normalised + model->d, *score = z + model->h * model->tau,
           *y = score + slots, ignored = 0.0;
    for (size_t i = 0; i < model->d; ++i)
        real[i] = x[i] * all->of->weights.x_unit;
    reference_norm(model, all->exact, real, normalised);
    if (!reference_project(model, all->exact, normalised, z))
        return false;
    for (int own = 1; own >= 0; --own) {
        for (size_t slot = 0; slot < slots; ++slot) {
            const double *bits = z + slot / m * model->tau;
            const size_t taken = expected->row[slot] & (((size_t)1 << model->tau) - 1);
            all->flips += own && taken != best_code(model, bits, 0) && taken != best_code(model, bits, m - 1) ? 1 : 0;
            all->code[slot] = own ? best_code(model, bits, slot % m) : taken;
            score[slot] = reference_score(model, bits, all->code[slot]);
        }
        if (!reference_gather(model, all->exact, all->code, score, y))
            return false;
        double *worst = own ? &all->own_codes : &all->same_codes;
        *worst = fmax(*worst, relative_error(expected->y, all->of->y_unit, y, model->d_out, own ? &ignored : &all->element));
    }
    return true;
}

/* Compares all tokens. False with one line: a value does not fit its type, or a table cannot be read. */
static bool compare_tokens(comparison *all, const results *got, void *memory, char *error)
{
    const integer_case *c = all->of;
    uint32_t *row = memory;
    int32_t *score = (int32_t *)(void *)(row + c->slots), *y = score + c->slots;
    const results expected = {row, score, y};
    for (size_t token = 0; token < c->tokens; ++token) {
        const bool in_range = reference_integer(&c->weights, c->x + token * c->model.d, row, score, y, error, ERROR_SIZE);
        count_differences(all, token, got, &expected);
        if (!in_range)
            return false;
        if (token >= SPECIAL && !compare_token(all, token, &expected))
            return files_error(error, ERROR_SIZE, "not enough memory, or a table with a value that is not finite");
    }
    return true;
}

static int compare(lua_State *L)
{
    lua_settop(L, 2);
    char error[ERROR_SIZE];
    integer_case c;
    const size_t random = field_size(L, 1, where, "tokens");
    size_t bytes;
    const uint32_t *given = (const uint32_t *)(const void *)luaL_checklstring(L, 2, &bytes);
    if (!case_at(L, random, &c, error))
        return host_fail(L, error);
    luaL_argcheck(L, bytes == c.tokens * (2 * c.slots + c.model.d_out) * sizeof *given, 2, "must be of all tokens");
    const int32_t *scores = (const int32_t *)(const void *)(given + c.tokens * c.slots);
    checkpoint *file = checkpoint_open(&c.model, field_text(L, 1, where, "weights", NULL), field_text(L, 1, where, "prefix", ""),
                                       field_flag(L, 1, "blocks_in_out"), error, sizeof error);
    if (!file) {
        files_unmap(&c.blob);
        return host_fail(L, error);
    }
    comparison all = {.of = &c, .exact = checkpoint_weights(file)};
    all.memory = lua_newuserdatauv(L, (2 * c.model.d + c.model.h * c.model.tau + c.slots + c.model.d_out) * sizeof *all.memory, 0);
    all.code = lua_newuserdatauv(L, c.slots * sizeof *all.code, 0);
    void *own = lua_newuserdatauv(L, (2 * c.slots + c.model.d_out) * sizeof(int32_t), 0);
    const bool in_range = compare_tokens(&all, &(results){given, scores, scores + c.tokens * c.slots}, own, error);
    files_unmap(&c.blob);
    checkpoint_close(file);
    lua_newtable(L);
    field_set_size(L, "rows", all.rows);
    field_set_size(L, "scores", all.scores);
    field_set_size(L, "values", all.values);
    field_set_size(L, "code_flips", all.flips);
    field_set_number(L, "rel_err", all.same_codes);
    field_set_number(L, "rel_err_flips", all.own_codes);
    field_set_number(L, "max_abs_err", all.element);
    if (!in_range)
        field_set_text(L, "range", error);
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

static int answers(lua_State *L)
{
    char error[ERROR_SIZE];
    integer_case c;
    lua_settop(L, 1);
    if (!case_at(L, field_size(L, 1, where, "tokens"), &c, error))
        return host_fail(L, error);
    const size_t bytes = c.tokens * c.model.d_out * sizeof(int32_t);
    uint32_t *row = lua_newuserdatauv(L, c.slots * sizeof *row, 0);
    int32_t *score = lua_newuserdatauv(L, c.slots * sizeof *score, 0), *y = lua_newuserdatauv(L, bytes, 0);
    bool ok = true;
    for (size_t token = 0; ok && token < c.tokens; ++token) {
        const int16_t *x = c.x + token * c.model.d;
        ok = reference_integer(&c.weights, x, row, score, y + token * c.model.d_out, error, sizeof error);
    }
    files_unmap(&c.blob);
    if (!ok)
        return host_fail(L, error);
    lua_pushlstring(L, (const char *)y, bytes);
    return 1;
}

int luaopen_integer_reference(lua_State *L)
{
    static const luaL_Reg functions[] = {{"compare", compare}, {"tokens", tokens}, {"answers", answers},
                                         {"units", units},     {"values", values}, {NULL, NULL}};
    luaL_newlib(L, functions);
    field_set_size(L, "special", SPECIAL);
    return 1;
}
