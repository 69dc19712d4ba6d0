/* The Lua module `distil`: a model with LookupFFNs that learns end to end from a dense one.

   distil.open(job) -> student | nil, message. job = { library; step, workspace (names of functions); parameters, gradients, table_rows,
   width, pitch (floats); constants (bytes, "" for none); logits, soft_cap, pool ("" or mean, first, last), pooled, vectors, out, weight,
   bias (bytes, "" for none), activation (none, tanh, relu), unit; tensors = { { at, rows, columns, pitch, rate, tables,
   rounding (harness/train/rounding_at.h; nil: it is not rounded) }, ... } }, as harness/convert/distil.h has them. Methods:

     set(i, bytes)   tensor number i of the list becomes these float32
     get(i) -> bytes
     step({ ids, ... }, rows, n, rate, table_rate) -> loss a token | nil, message; rows: float32 of the dense model, of all tokens */
#include "harness/convert/distil.h"

#include "gen/host/fields.h"
#include "gen/host/host.h"
#include "harness/base/library.h"
#include "harness/base/memory.h"
#include "harness/base/modules.h"
#include "harness/train/rounding_at.h"

#include <lauxlib.h>

#include <stdlib.h>
#include <string.h>

#define METATABLE "distil.student"

static const char where[] = "distil: ";

enum { ERROR_SIZE = 4096 + 256, MOST_TENSORS = 100000, MOST_SEQUENCES = 1 << 20 };

typedef struct {
    loaded_library library;
    distil *distil;
    distil_tensor *tensors;
    size_t count, width;
    float *constants;
} object;

static int close_(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    distil_free(o->distil);
    free(o->tensors);
    free(o->constants);
    library_close(&o->library);
    *o = (object){0};
    return 0;
}

static bool read_tensors(lua_State *L, object *o, const distil_job *job)
{
    lua_getfield(L, 1, "tensors");
    o->count = (size_t)luaL_len(L, -1);
    luaL_argcheck(L, o->count < MOST_TENSORS, 1, "tensors");
    o->tensors = calloc(o->count + 1, sizeof *o->tensors);
    for (size_t i = 0; o->tensors && i < o->count; ++i) {
        lua_geti(L, -1, (lua_Integer)i + 1);
        const int top = lua_gettop(L);
        distil_tensor t = {.at = field_size(L, top, where, "at"),
                           .rows = field_size(L, top, where, "rows"),
                           .columns = field_size(L, top, where, "columns"),
                           .pitch = field_size(L, top, where, "pitch"),
                           .rate = field_number(L, top, where, "rate"),
                           .tables = field_flag(L, top, "tables")};
        const size_t end = t.rows ? t.at + (t.rows - 1) * t.pitch + t.columns : 0;
        luaL_argcheck(L, t.pitch >= t.columns && end <= (t.tables ? job->parameters : job->gradients), 1, "a tensor outside of its memory");
        t.rounds = rounding_at(L, top, "rounding", t.tables ? t.columns : t.rows * t.columns, &t.rounding);
        luaL_argcheck(L, !t.rounds || t.tables || t.pitch == t.columns, 1, "a rounded tensor with space between rows");
        o->tensors[i] = t;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return o->tensors != NULL;
}

/* The job's fields of the vector: weight and bias (bytes, "" for none, which the table keeps), out, activation, unit. */
static void read_vector(lua_State *L, distil_job *job)
{
    static const char *const activations[] = {"none", "tanh", "relu", NULL};
    size_t bytes = 0, bias_bytes = 0;
    vector_map *v = &job->vector;
    lua_getfield(L, 1, "weight");
    const char *weight = luaL_checklstring(L, -1, &bytes);
    lua_getfield(L, 1, "bias");
    const char *bias = luaL_checklstring(L, -1, &bias_bytes);
    lua_getfield(L, 1, "activation");
    const int activation = luaL_checkoption(L, -1, "none", activations);
    lua_pop(L, 3);
    v->activation = activation == 1 ? VECTOR_TANH : activation == 2 ? VECTOR_RELU : VECTOR_LINEAR;
    v->width = job->width;
    v->out = field_size(L, 1, where, "out");
    v->unit = field_flag(L, 1, "unit");
    luaL_argcheck(L, bytes == 0 ? v->out == job->width : bytes == v->out * job->width * 4, 1, "weight");
    luaL_argcheck(L, bias_bytes == 0 || bias_bytes == v->out * 4, 1, "bias");
    v->weight = bytes ? (const void *)weight : NULL;
    v->bias = bias_bytes ? (const void *)bias : NULL;
}

static int open_(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    object *o = lua_newuserdatauv(L, sizeof *o, 0);
    *o = (object){0};
    luaL_setmetatable(L, METATABLE);
    char error[ERROR_SIZE];
    if (!library_open(&o->library, field_text(L, 1, where, "library", NULL), LIBRARY_ALONE, error, sizeof error))
        return host_fail(L, error);
    static const char *const pools[] = {"", "mean", "first", "last", NULL};
    lua_getfield(L, 1, "pool");
    const distil_pool pool = (distil_pool)luaL_checkoption(L, -1, "", pools);
    lua_pop(L, 1);
    distil_job job = {.parameters = field_size(L, 1, where, "parameters"),
                      .gradients = field_size(L, 1, where, "gradients"),
                      .table_rows = field_size(L, 1, where, "table_rows"),
                      .width = field_size(L, 1, where, "width"),
                      .pitch = field_size(L, 1, where, "pitch"),
                      .logits = field_flag(L, 1, "logits"),
                      .soft_cap = field_number(L, 1, where, "soft_cap"),
                      .pool = pool,
                      .pooled = field_number(L, 1, where, "pooled"),
                      .vectors = field_number(L, 1, where, "vectors")};
    if (!library_find(&o->library, field_text(L, 1, where, "step", NULL), &job.step, error, sizeof error) ||
        !library_find(&o->library, field_text(L, 1, where, "workspace", NULL), &job.workspace, error, sizeof error))
        return host_fail(L, error);
    size_t bytes = 0;
    lua_getfield(L, 1, "constants");
    const char *constants = luaL_checklstring(L, -1, &bytes);
    o->constants = bytes > 0 ? aligned_memory(bytes) : NULL;
    if (o->constants)
        memcpy(o->constants, constants, bytes);
    lua_pop(L, 1);
    o->width = job.width;
    read_vector(L, &job);
    if ((bytes == 0 || o->constants) && read_tensors(L, o, &job)) {
        job.tensors = o->tensors;
        job.tensor_count = o->count;
        o->distil = distil_create(&job, o->constants);
    }
    return o->distil ? 1 : host_fail(L, "not enough memory to distil this model");
}

static const distil_tensor *tensor_at(lua_State *L, const object *o)
{
    const lua_Integer i = luaL_checkinteger(L, 2);
    luaL_argcheck(L, i >= 1 && (size_t)i <= o->count, 2, "number of a tensor");
    return o->tensors + i - 1;
}

static int set(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    const distil_tensor *t = tensor_at(L, o);
    size_t bytes = 0;
    const char *from = luaL_checklstring(L, 3, &bytes);
    luaL_argcheck(L, bytes == t->rows * t->columns * 4, 3, "bytes of the tensor");
    for (size_t row = 0; row < t->rows; ++row)
        memcpy(distil_parameters(o->distil) + t->at + row * t->pitch, from + row * t->columns * 4, t->columns * 4);
    return 0;
}

static int get(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    const distil_tensor *t = tensor_at(L, o);
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    for (size_t row = 0; row < t->rows; ++row)
        luaL_addlstring(&buffer, (const char *)(const void *)(distil_parameters(o->distil) + t->at + row * t->pitch), t->columns * 4);
    luaL_pushresult(&buffer);
    return 1;
}

static int step(lua_State *L)
{
    object *o = luaL_checkudata(L, 1, METATABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    size_t bytes = 0, tokens = 0, at = 0;
    const void *rows = luaL_checklstring(L, 3, &bytes);
    const size_t sequences = (size_t)luaL_len(L, 2);
    luaL_argcheck(L, sequences > 0 && sequences < MOST_SEQUENCES, 2, "sequences");
    uint32_t *lengths = lua_newuserdatauv(L, sequences * sizeof *lengths, 0);
    for (size_t s = 0; s < sequences; ++s) {
        lua_geti(L, 2, (lua_Integer)s + 1);
        lengths[s] = (uint32_t)luaL_len(L, -1);
        luaL_argcheck(L, lengths[s] > 0, 2, "an empty sequence");
        tokens += lengths[s];
        lua_pop(L, 1);
    }
    luaL_argcheck(L, bytes == tokens * o->width * 4, 3, "a row a token");
    int32_t *ids = lua_newuserdatauv(L, tokens * sizeof *ids, 0);
    for (size_t s = 0; s < sequences; ++s) {
        lua_geti(L, 2, (lua_Integer)s + 1);
        for (size_t i = 0; i < lengths[s]; ++i) {
            lua_geti(L, -1, (lua_Integer)i + 1);
            ids[at++] = (int32_t)luaL_checkinteger(L, -1);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    const double loss = distil_step(o->distil, &(distil_batch){ids, lengths, sequences, rows}, (size_t)luaL_checkinteger(L, 4),
                                    luaL_checknumber(L, 5), luaL_checknumber(L, 6));
    if (loss < 0)
        return host_fail(L, "not enough memory for a step of so many tokens");
    lua_pushnumber(L, loss);
    return 1;
}

int luaopen_distil(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", open_}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"set", set}, {"get", get}, {"step", step}, {NULL, NULL}};
    host_class(L, METATABLE, close_, methods);
    luaL_newlib(L, functions);
    return 1;
}
