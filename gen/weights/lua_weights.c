/* The Lua module `weights`: packs checkpoints, and compares and rounds them. */
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/weights/blob_header.h"
#include "gen/weights/calibrate.h"
#include "gen/weights/lua_gguf.h"
#include "gen/weights/lua_sample.h"
#include "gen/weights/packing.h"
#include "gen/weights/round_checkpoint.h"

#include <lauxlib.h>
#include <stdlib.h>

static const char where[] = "weights: ";

enum { ERROR_SIZE = PACKING_ERROR_SIZE };

static void write_header(packing *p, int job)
{
    lua_State *L = p->L;
    const blob_header header = {.magic = field_text(L, job, where, "magic", NULL),
                                .digest = field_text(L, job, where, "digest", NULL),
                                .format = field_size(L, job, where, "format"),
                                .bytes = field_size(L, job, where, "header_bytes")};
    blob_header_write(&header, p->blob, p->blob_bytes);
}

/* The packing that the job at 1 describes, with nothing done yet. */
static packing packing_of(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    packing p = {.L = L, .path = field_text(L, 1, where, "weights", ""), .prefix = field_text(L, 1, where, "prefix", NULL)};
    if (*p.path == '\0')
        p.path = NULL;
    lua_getfield(L, 1, "blocks_in_out");
    p.blocks_in_out = lua_toboolean(L, -1);
    return p;
}

static bool open_checked(packing *p, int job)
{
    p->checkpoint = shards_open(p->path, p->error, sizeof p->error);
    return p->checkpoint && packing_expect_tensors(p, job);
}

/* weights.check(job) -> true | nil, message: whether weights.pack would find its tensors. */
static int weights_check(lua_State *L)
{
    packing p = packing_of(L);
    const bool ok = open_checked(&p, 1);
    shards_close(p.checkpoint);
    if (!ok)
        return host_fail(L, p.error);
    lua_pushboolean(L, 1);
    return 1;
}

static bool pack_all(packing *p, int job, int errors)
{
    lua_State *L = p->L;
    if (p->path && !open_checked(p, job))
        return false;
    p->blob_bytes = field_size(L, job, where, "bytes");
    p->blob = calloc(1, p->blob_bytes);
    if (!p->blob)
        return files_error(p->error, sizeof p->error, "%s: not enough memory for %zu bytes", field_text(L, job, where, "output", NULL),
                           p->blob_bytes);
    lua_getfield(L, job, "sections");
    const int sections = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, sections, i) == LUA_TTABLE; ++i) {
        const bool ok = packing_section(p, lua_gettop(L), errors);
        lua_settop(L, sections);
        if (!ok)
            return false;
    }
    lua_settop(L, sections - 1);
    if (lua_getfield(L, job, "integer") == LUA_TTABLE && !packing_integer(p, lua_gettop(L), errors))
        return false;
    lua_settop(L, sections - 1);
    if (lua_getfield(L, job, "calibrations") == LUA_TTABLE) {
        const int list = lua_gettop(L);
        lua_newtable(L);
        for (lua_Integer i = 1; lua_rawgeti(L, list, i) == LUA_TTABLE; ++i) {
            if (!packing_calibrated(p, lua_gettop(L), errors, list + 1))
                return false;
            lua_settop(L, list + 1);
        }
        lua_settop(L, list + 1);
        lua_setfield(L, errors, "calibrations");
    }
    lua_settop(L, sections - 1);
    write_header(p, job);

    files_output output = {.path = field_text(L, job, where, "output", NULL), .bytes = (const char *)p->blob, .size = p->blob_bytes};
    const bool good = files_write(&output, 1, p->error, sizeof p->error);
    p->changed = output.changed;
    return good;
}

/* weights.pack(job) -> { section = relative error that rounding made in it }, whether the file is another one than before | nil, message.
   The job is blob.packing's of gen/plan/blob.lua: weights (absent: no section comes from a checkpoint), output, prefix, blocks_in_out,
   tensors, sections, integer, calibrations, bytes, header_bytes, magic, format, digest. A section with a `text` is those bytes. Of a job
   with calibrations the table has the key calibrations, too, a list: what came of each on so many `rows` that were held back, flips as
   shares of their codes, with the names of calibrate.h. */
static int weights_pack(lua_State *L)
{
    packing p = packing_of(L);
    lua_newtable(L);
    const int errors = lua_gettop(L);
    const bool ok = pack_all(&p, 1, errors);
    shards_close(p.checkpoint);
    free(p.blob);
    free(p.data);
    free(p.vector);
    free(p.raw);
    if (!ok)
        return host_fail(L, p.error);
    lua_settop(L, errors);
    lua_pushboolean(L, p.changed);
    return 2;
}

/* weights.tensors(path) -> { name = { dtype, shape, blocks = what a GGUF file has instead or would have, or nil, rounded = "4 bits" or
   "groups" if it is in half bytes or in groups of bytes } } | nil, message */
static int weights_tensors(lua_State *L)
{
    char error[ERROR_SIZE];
    shards *in = shards_open(luaL_checkstring(L, 1), error, sizeof error);
    if (in == NULL)
        return host_fail(L, error);
    lua_newtable(L);
    const int tensors = lua_gettop(L);
    for (size_t i = 0; i < shards_count(in); ++i) {
        const safetensors *file = shards_at(in, i);
        for (size_t k = 0; k < safetensors_count(file); ++k) {
            const safetensors_tensor *tensor = safetensors_at(file, k);
            lua_newtable(L);
            field_set_text(L, "dtype", tensor->dtype_name);
            if (tensor->blocks != NULL)
                field_set_text(L, "blocks", safetensors_blocks_name(tensor));
            if (tensor->halves || (tensor->blocks != NULL && tensor->scales_at > 0)) {
                lua_pushstring(L, tensor->halves ? "4 bits" : "groups");
                lua_setfield(L, -2, "rounded");
            }
            lua_createtable(L, tensor->rank, 0);
            for (int d = 0; d < tensor->rank; ++d) {
                lua_pushinteger(L, tensor->shape[d]);
                lua_rawseti(L, -2, d + 1);
            }
            lua_setfield(L, -2, "shape");
            lua_setfield(L, tensors, tensor->name);
        }
    }
    shards_close(in);
    return 1;
}

/* Whether two tensors have the same shape and values: 1 or 0; -1 with a message. */
static int same_values(const shards *in, const char *const names[2], char *error)
{
    enum { MOST = 256 };
    const safetensors *files[2];
    const safetensors_tensor *tensors[2];
    double values[2][MOST];
    for (int i = 0; i < 2; ++i) {
        tensors[i] = shards_expect(in, (shards_wanted){.name = names[i]}, &files[i], error, ERROR_SIZE);
        if (!tensors[i])
            return -1;
    }
    const size_t count = tensors[0]->count;
    bool same = tensors[0]->rank == tensors[1]->rank;
    for (int i = 0; same && i < tensors[0]->rank; ++i)
        same = tensors[0]->shape[i] == tensors[1]->shape[i];
    for (size_t done = 0; same && done < count; done += MOST) {
        const size_t some = count - done < MOST ? count - done : MOST;
        for (int i = 0; i < 2; ++i)
            if (!safetensors_read(files[i], tensors[i], done, some, values[i], error, ERROR_SIZE))
                return -1;
        for (size_t i = 0; same && i < some; ++i)
            same = values[0][i] == values[1][i];
    }
    return same;
}

/* weights.values(path, name, most) -> the values of a small tensor, at most so many | nil, message */
static int weights_values(lua_State *L)
{
    char error[ERROR_SIZE];
    const char *const name = luaL_checkstring(L, 2);
    const size_t most = (size_t)luaL_checkinteger(L, 3);
    const safetensors *file;
    shards *in = shards_open(luaL_checkstring(L, 1), error, sizeof error);
    const safetensors_tensor *tensor = in ? shards_expect(in, (shards_wanted){.name = name}, &file, error, sizeof error) : NULL;
    if (tensor && tensor->count > most)
        files_error(error, sizeof error, "%s: tensor %s: %zu elements: must be at most %zu", shards_path(in), name, tensor->count, most);
    double *values = tensor && tensor->count <= most ? safetensors_load(file, tensor, error, sizeof error) : NULL;
    if (values)
        lua_newtable(L);
    for (size_t i = 0; values && i < tensor->count; ++i) {
        lua_pushnumber(L, values[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    const bool good = values != NULL;
    free(values);
    shards_close(in);
    return good ? 1 : host_fail(L, error);
}

/* weights.differing(path, pairs) -> the number of the first pair of names whose tensors have other shapes or values, or false | nil,
   message. */
static int weights_differing(lua_State *L)
{
    char error[ERROR_SIZE];
    const char *path = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    shards *in = shards_open(path, error, sizeof error);
    if (in == NULL)
        return host_fail(L, error);
    int same = 1;
    lua_Integer pair = 0;
    while (same == 1 && lua_rawgeti(L, 2, ++pair) == LUA_TTABLE) {
        lua_rawgeti(L, 3, 1);
        lua_rawgeti(L, 3, 2);
        const char *names[2] = {lua_tostring(L, 4), lua_tostring(L, 5)};
        same = same_values(in, names, error);
        lua_settop(L, 2);
    }
    shards_close(in);
    if (same < 0)
        return host_fail(L, error);
    lua_settop(L, 0);
    if (same == 1)
        lua_pushboolean(L, false);
    else
        lua_pushinteger(L, pair);
    return 1;
}

/* The form that the table in argument 3 has for a tensor, or its shape. */
static rounded_form form_in_argument(void *context, const safetensors_tensor *tensor)
{
    lua_State *const L = context;
    if (!lua_istable(L, 3))
        return rounded_by_shape(tensor, lua_toboolean(L, 3));
    lua_getfield(L, 3, tensor->name);
    const rounded_form form = lua_isstring(L, -1) ? rounded_form_named(lua_tostring(L, -1)) : ROUNDED_NOT;
    lua_pop(L, 1);
    return form;
}

/* weights.quantise(path, output, how, given) -> relative error of what was rounded | nil, message: the checkpoint with matrices and tables
   in I8, or with how = true tables in half bytes. how = { name = form }: of these tensors alone, in forms of round_checkpoint.h. given:
   what is rounded already, of input_rounding, or nil. */
static int weights_quantise(lua_State *L)
{
    char error[ERROR_SIZE];
    double share = 0.0;
    lua_settop(L, 4);
    const bool tables = lua_isboolean(L, 3) && lua_toboolean(L, 3);
    const rounded_forms forms = {form_in_argument, L, lua_touserdata(L, 4), tables ? "tables of a LookupFFN" : NULL};
    shards *in = shards_open(luaL_checkstring(L, 1), error, sizeof error);
    const bool good = in != NULL && rounded_write(in, luaL_checkstring(L, 2), &forms, &share, error, sizeof error);
    shards_close(in);
    if (!good)
        return host_fail(L, error);
    lua_pushnumber(L, share);
    return 1;
}

int luaopen_weights(lua_State *L)
{
    static const luaL_Reg functions[] = {{"pack", weights_pack},       {"check", weights_check},         {"sample", weights_sample},
                                         {"tensors", weights_tensors}, {"differing", weights_differing}, {"metadata", weights_metadata},
                                         {"values", weights_values},   {"quantise", weights_quantise},   {NULL, NULL}};
    luaL_newlib(L, functions);
    field_set_size(L, "least_calibration_rows", CALIBRATE_LEAST_ROWS);
    return 1;
}
