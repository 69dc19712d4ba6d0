/* The Lua module `convert`: fits of LookupFFNs to dense FFNs, and the checkpoints that come out of it.

   convert.open(job) -> fit | nil, message. job = { library; lookup = { prepare, forward, rows, project (names of functions), d, h,
   neighbours, table_rows, bits, projection, prepared, sums, sums_projection_bias, sums_bias, pitch, z, slots, tile, whole, scratch, block,
   blocks, decay, and tables_rounding, projection_rounding as harness/train/rounding_at.h has them, nil: none }; linear, the same of tables
   of one bit; input, gate (optional), output = { prepare, load, product (names), prepared (floats), scratch, weight, bias (bytes of
   float32) }; f, tile, activation, most (tokens of a call) }. x: a string of float32, tokens by d, what the dense FFN reads. Methods:

     random(seed, deviation)          a random projection
     observe(x)                       counts it for the next two
     keep(count) -> { numbers, from 1 on } | nil, message: the strongest hidden neurons are not to be fitted; before centre
     centre()                         the bias becomes the mean of the targets
     imitate(seed, steps, rate) -> share of the variance of z that is missed | nil, message: z becomes the dense FFN's neurons
     step(x, n, projection_rate, table_rate, bias_rate)   a step
     collect(x), solve(sweeps, ridge) -> true | nil, message   tables by least squares
     hash_rows()                      tables out of the dense FFN's matrices
     measure(x), figures() -> unexplained share of the variance, share of rows used, entropy of the codes in bits, variance of the outputs
     field(name) -> bytes of float32, tables without their padding

   convert.read(checkpoint, view) -> bytes of float32 | nil, message: a matrix as gen/schema/checkpoint_names.lua describes it; false: the
   checkpoint has no such tensor.
   convert.write(path, checkpoint, { { name, shape, from (name there) | bytes }, ... }) -> true | nil, message. */
#include "harness/convert/fit.h"

#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/weights/random.h"
#include "gen/weights/shards.h"
#include "gen/weights/view.h"
#include "harness/base/library.h"
#include "harness/base/memory.h"
#include "harness/base/modules.h"
#include "harness/train/rounding_at.h"

#include <lauxlib.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define METATABLE "convert.fit"

static const char where[] = "convert: ";

enum { ERROR_SIZE = 4096 + 256, MOST_TENSORS = 100000, PIECE = 1 << 16 };

/* How the matrix of a product becomes what its kernel reads. */
typedef struct {
    fit_prepare *prepare;
    size_t floats, scratch; /* of that, and bytes that it works in */
} preparation;

typedef struct {
    loaded_library library;
    fit *fit;
    fit_lookup lookup;
    size_t most;
    fit_teacher teacher;
    preparation output; /* of the teacher's last product */
    float *owned[10];   /* what the teacher points to */
    int owned_count;
    char error[ERROR_SIZE]; /* the first function that the library lacks, "" for none */
} object;

static void find(lua_State *L, int table, object *o, const char *name, void *function)
{
    const char *symbol = field_text(L, table, where, name, NULL);
    if (!o->error[0])
        library_find(&o->library, symbol, function, o->error, sizeof o->error);
}

/* The floats of a field of bytes, aligned; NULL for an absent or empty one, or if memory is short. */
static float *floats_of(lua_State *L, int table, object *o, const char *name)
{
    size_t bytes = 0;
    lua_getfield(L, table, name);
    const char *text = lua_tolstring(L, -1, &bytes);
    float *memory = bytes > 0 ? aligned_memory(bytes) : NULL;
    if (memory) {
        memcpy(memory, text, bytes);
        o->owned[o->owned_count++] = memory;
    }
    lua_pop(L, 1);
    return memory;
}

/* What a product reads for the matrix `weight`, aligned; NULL: memory is short. */
static float *prepared_of(object *o, const preparation *how, const void *weight)
{
    float *prepared = aligned_memory(4 * how->floats);
    void *scratch = aligned_memory(how->scratch);
    if (prepared && scratch && how->prepare) {
        const fit_parameters p = {.projection = weight};
        how->prepare(&p, prepared, scratch);
    }
    free(scratch);
    o->owned[o->owned_count++] = prepared;
    return prepared;
}

/* A product of the dense FFN out of the field `name`, and how it is prepared. */
static fit_dense dense_of(lua_State *L, int job, object *o, const char *name, preparation *how)
{
    fit_dense dense = {0};
    if (lua_getfield(L, job, name) == LUA_TTABLE) {
        const int table = lua_gettop(L);
        find(L, table, o, "prepare", &how->prepare);
        find(L, table, o, "load", &dense.load);
        find(L, table, o, "product", &dense.product);
        dense.bias = floats_of(L, table, o, "bias");
        how->floats = field_size(L, table, where, "prepared");
        how->scratch = field_size(L, table, where, "scratch");
        lua_getfield(L, table, "weight");
        dense.prepared = prepared_of(o, how, lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return dense;
}

/* The kernels and sizes of the LookupFFN in the field `name`. */
static fit_lookup lookup_of(lua_State *L, int job, object *o, const char *name)
{
    fit_lookup l = {0};
    lua_getfield(L, job, name);
    const int table = lua_gettop(L);
    find(L, table, o, "prepare", &l.prepare);
    find(L, table, o, "forward", &l.forward);
    find(L, table, o, "rows", &l.rows);
    find(L, table, o, "project", &l.project);
    struct {
        const char *name;
        size_t *to;
    } sizes[] = {{"d", &l.d},
                 {"h", &l.h},
                 {"neighbours", &l.neighbours},
                 {"table_rows", &l.table_rows},
                 {"bits", &l.bits},
                 {"pitch", &l.pitch},
                 {"z", &l.z},
                 {"projection", &l.projection},
                 {"prepared", &l.prepared},
                 {"sums", &l.sums},
                 {"sums_projection_bias", &l.sums_projection_bias},
                 {"sums_bias", &l.sums_bias},
                 {"slots", &l.slots},
                 {"tile", &l.tile},
                 {"whole", &l.whole},
                 {"scratch", &l.scratch},
                 {"block", &l.block},
                 {"blocks", &l.blocks}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        *sizes[i].to = field_size(L, table, where, sizes[i].name);
    l.decay = field_number(L, table, where, "decay");
    lua_pop(L, 1);
    return l;
}

static int close_(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    fit_free(o->fit);
    for (int i = 0; i < o->owned_count; ++i)
        free(o->owned[i]);
    library_close(&o->library);
    *o = (object){0};
    return 0;
}

static int fail(lua_State *L, const char *format, const char *a, const char *b)
{
    lua_pushnil(L);
    lua_pushfstring(L, format, a, b);
    return 2;
}

/* Lets the fit round what the field `lookup` says. False: memory is short. */
static bool round_weights(lua_State *L, const object *o)
{
    rounding tables, projection;
    lua_getfield(L, 1, "lookup");
    const int table = lua_gettop(L);
    const bool rounds_tables = rounding_at(L, table, "tables_rounding", o->lookup.d, &tables);
    const bool rounds_projection = rounding_at(L, table, "projection_rounding", o->lookup.projection, &projection);
    lua_pop(L, 1);
    return (!rounds_tables && !rounds_projection) ||
           fit_round(o->fit, rounds_tables ? &tables : NULL, rounds_projection ? &projection : NULL);
}

static int open_(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    object *o = lua_newuserdatauv(L, sizeof *o, 0);
    *o = (object){0};
    luaL_setmetatable(L, METATABLE);
    const char *path = field_text(L, 1, where, "library", NULL);
    if (!library_open(&o->library, path, LIBRARY_ALONE, o->error, sizeof o->error))
        return host_fail(L, o->error);
    const fit_lookup linear = lookup_of(L, 1, o, "linear");
    o->lookup = lookup_of(L, 1, o, "lookup");
    static const char *const activations[] = {"relu", "gelu", "gelu_tanh", "silu", NULL};
    lua_getfield(L, 1, "activation");
    const fit_activation activation = (fit_activation)luaL_checkoption(L, -1, NULL, activations);
    lua_pop(L, 1);
    fit_teacher *teacher = &o->teacher;
    *teacher = (fit_teacher){.gated = field_flag(L, 1, "gate"),
                             .d = o->lookup.d,
                             .f = field_size(L, 1, where, "f"),
                             .tile = field_size(L, 1, where, "tile"),
                             .activation = activation};
    preparation how;
    teacher->input = dense_of(L, 1, o, "input", &how);
    teacher->gate = dense_of(L, 1, o, "gate", &how);
    teacher->output = dense_of(L, 1, o, "output", &o->output);
    lua_getfield(L, 1, "input");
    teacher->rows = floats_of(L, lua_gettop(L), o, "weight");
    lua_getfield(L, 1, "output");
    teacher->columns = floats_of(L, lua_gettop(L), o, "weight");
    lua_pop(L, 2);
    if (o->error[0])
        return host_fail(L, o->error);
    o->most = field_size(L, 1, where, "most");
    o->fit = fit_create(&o->lookup, &linear, teacher, o->most);
    for (int i = 0; i < o->owned_count; ++i)
        if (!o->owned[i])
            return fail(L, "%s: not enough memory%s", path, "");
    if (!o->fit || !round_weights(L, o))
        return fail(L, "%s: not enough memory%s", path, "");
    return 1;
}

/* Argument 2, a string of tokens. */
static const float *tokens_of(lua_State *L, const object *o, size_t *tokens)
{
    size_t bytes;
    const void *text = luaL_checklstring(L, 2, &bytes);
    *tokens = bytes / 4 / o->lookup.d;
    luaL_argcheck(L, *tokens > 0 && *tokens <= o->most && bytes == *tokens * o->lookup.d * 4, 2, "tokens");
    return text;
}

static int random_(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    random_state state = random_seed((uint64_t)luaL_checkinteger(L, 2));
    const double deviation = luaL_checknumber(L, 3);
    size_t count;
    float *to = fit_field(o->fit, "projection", &count);
    random_fill(&state, to, count, 0, deviation);
    return 0;
}

static int observe(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    size_t tokens;
    const float *x = tokens_of(L, o, &tokens);
    fit_observe(o->fit, x, tokens);
    return 0;
}

static int keep(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    const size_t count = (size_t)luaL_checkinteger(L, 2);
    luaL_argcheck(L, count > 0 && count < o->teacher.f, 2, "neurons");
    size_t *neurons = lua_newuserdatauv(L, count * sizeof *neurons, 0);
    fit_dense rest = o->teacher.output;
    const bool kept = fit_keep(o->fit, count, neurons);
    rest.prepared = kept ? prepared_of(o, &o->output, o->teacher.columns) : NULL;
    if (!rest.prepared)
        return fail(L, "%s%s", where, "not enough memory");
    fit_set_rest(o->fit, &rest);
    lua_createtable(L, (int)count, 0);
    for (size_t n = 0; n < count; ++n) {
        lua_pushinteger(L, (lua_Integer)neurons[n] + 1);
        lua_rawseti(L, -2, (lua_Integer)n + 1);
    }
    return 1;
}

static int centre(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    fit_centre(o->fit);
    return 0;
}

static int imitate(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    const double missed = fit_imitate(o->fit, (uint64_t)luaL_checkinteger(L, 2), (size_t)luaL_checkinteger(L, 3), luaL_checknumber(L, 4));
    if (missed < 0)
        return fail(L, "%s%s", where, "not enough memory");
    lua_pushnumber(L, missed);
    return 1;
}

static int step(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    size_t tokens;
    const float *x = tokens_of(L, o, &tokens);
    const fit_step_rates rates = {luaL_checknumber(L, 4), luaL_checknumber(L, 5), luaL_checknumber(L, 6)};
    fit_step(o->fit, x, tokens, (size_t)luaL_checkinteger(L, 3), &rates);
    return 0;
}

static int collect(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    size_t tokens;
    const float *x = tokens_of(L, o, &tokens);
    if (!fit_collect(o->fit, x, tokens))
        return fail(L, "%s%s", where, "not enough memory");
    lua_pushboolean(L, 1);
    return 1;
}

static int solve(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    if (!fit_solve(o->fit, (size_t)luaL_checkinteger(L, 2), luaL_checknumber(L, 3)))
        return fail(L, "%s%s", where, "not enough memory");
    lua_pushboolean(L, 1);
    return 1;
}

static int hash_rows(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    fit_hash_rows(o->fit);
    return 0;
}

static int measure(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    size_t tokens;
    const float *x = tokens_of(L, o, &tokens);
    fit_measure(o->fit, x, tokens);
    return 0;
}

static int figures(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    double share, entropy, variance;
    fit_uses(o->fit, &share, &entropy);
    lua_pushnumber(L, fit_unexplained(o->fit, &variance));
    lua_pushnumber(L, share);
    lua_pushnumber(L, entropy);
    lua_pushnumber(L, variance);
    return 4;
}

static int field(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    const char *name = luaL_checkstring(L, 2);
    size_t count;
    const float *from = fit_field(o->fit, name, &count);
    if (strcmp(name, "tables") != 0) {
        lua_pushlstring(L, (const char *)(const void *)from, count * 4);
        return 1;
    }
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    for (size_t at = 0; at < count; at += o->lookup.pitch)
        luaL_addlstring(&buffer, (const char *)(const void *)(from + at), o->lookup.d * 4);
    luaL_pushresult(&buffer);
    return 1;
}

static int read_(lua_State *L)
{
    char error[ERROR_SIZE];
    shards *checkpoint = shards_open(luaL_checkstring(L, 1), error, sizeof error);
    if (!checkpoint) {
        lua_pushnil(L);
        lua_pushstring(L, error);
        return 2;
    }
    if (!shards_have(checkpoint, field_text(L, 2, where, "tensor", NULL))) {
        shards_close(checkpoint);
        lua_pushboolean(L, 0);
        return 1;
    }
    view v;
    double *values = NULL;
    float *floats = NULL;
    const bool good = view_at(L, 2, "tensor", (view_source){checkpoint, NULL}, &v, error, sizeof error) &&
                      (values = malloc(v.rows * v.columns * sizeof *values)) && (floats = malloc(v.rows * v.columns * sizeof *floats)) &&
                      view_read(&v, 0, v.rows, values, error, sizeof error);
    for (size_t i = 0; good && i < v.rows * v.columns; ++i)
        floats[i] = (float)values[i];
    if (good)
        lua_pushlstring(L, (const char *)(void *)floats, v.rows * v.columns * sizeof *floats);
    else
        lua_pushnil(L);
    lua_pushstring(L, good ? "" : error);
    free(values);
    free(floats);
    shards_close(checkpoint);
    return 2;
}

/* Appends tensor `name` of the checkpoint. */
static bool copy(safetensors_writer *writer, const shards *checkpoint, const char *name, const safetensors_description *as, char *error)
{
    const safetensors *file;
    const shards_wanted wanted = {.name = name, .shape = as->shape, .rank = as->rank};
    const safetensors_tensor *tensor = shards_expect(checkpoint, wanted, &file, error, ERROR_SIZE);
    double *values = tensor ? malloc(PIECE * sizeof *values) : NULL;
    float *floats = tensor ? malloc(PIECE * sizeof *floats) : NULL;
    bool good = tensor && ((values && floats) || files_error(error, ERROR_SIZE, "%s: not enough memory", name));
    for (size_t at = 0; good && at < tensor->count; at += PIECE) {
        const size_t here = smaller(PIECE, tensor->count - at);
        good = safetensors_read(file, tensor, at, here, values, error, ERROR_SIZE);
        for (size_t i = 0; good && i < here; ++i)
            floats[i] = (float)values[i];
        good = good && safetensors_append(writer, floats, here * sizeof *floats, error, ERROR_SIZE);
    }
    free(values);
    free(floats);
    return good;
}

static int write_(lua_State *L)
{
    char error[ERROR_SIZE];
    const char *path = luaL_checkstring(L, 1);
    const size_t count = (size_t)luaL_len(L, 3);
    luaL_argcheck(L, count > 0 && count < MOST_TENSORS, 3, "tensors");
    safetensors_description *list = lua_newuserdatauv(L, count * sizeof *list, 0);
    for (size_t i = 0; i < count; ++i) {
        lua_geti(L, 3, (lua_Integer)i + 1);
        list[i] = (safetensors_description){.name = field_text(L, -1, where, "name", NULL), .dtype = DTYPE_F32};
        list[i].rank = field_dimensions(L, -1, "shape", list[i].shape, SAFETENSORS_MAX_RANK);
        lua_pop(L, 1);
    }
    shards *checkpoint = shards_open(luaL_checkstring(L, 2), error, sizeof error);
    safetensors_writer *writer = checkpoint ? safetensors_create(path, list, count, error, sizeof error) : NULL;
    bool good = writer != NULL;
    for (size_t i = 0; good && i < count; ++i) {
        lua_geti(L, 3, (lua_Integer)i + 1);
        size_t bytes = 0;
        lua_getfield(L, -1, "bytes");
        const char *data = lua_tolstring(L, -1, &bytes);
        lua_getfield(L, -2, "from");
        good = data ? safetensors_append(writer, data, bytes, error, sizeof error)
                    : copy(writer, checkpoint, lua_tostring(L, -1), list + i, error);
        lua_pop(L, 3);
    }
    if (good)
        good = safetensors_finish(writer, error, sizeof error);
    else
        safetensors_abandon(writer);
    shards_close(checkpoint);
    if (!good) {
        lua_pushnil(L);
        lua_pushstring(L, error);
        return 2;
    }
    lua_pushboolean(L, 1);
    return 1;
}

int luaopen_convert(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", open_}, {"read", read_}, {"write", write_}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"random", random_},  {"observe", observe},     {"imitate", imitate}, {"keep", keep},
                                       {"centre", centre},   {"step", step},           {"collect", collect}, {"solve", solve},
                                       {"measure", measure}, {"hash_rows", hash_rows}, {"figures", figures}, {"field", field},
                                       {NULL, NULL}};
    host_class(L, METATABLE, close_, methods);
    luaL_newlib(L, functions);
    return 1;
}
