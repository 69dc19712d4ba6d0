/* Lua module `kernel`: runs a compiled variant, and reads what a job says of one. */
#include "harness/verify/lua_kernel.h"
#include "harness/base/modules.h"

#include "gen/host/fields.h"
#include "harness/base/blob_memory.h"

#include "gen/host/host.h"
#include "gen/weights/npy.h"

#include <lauxlib.h>

#include <stdlib.h>

enum { ERROR_SIZE = 1024 };

static size_t size_field(lua_State *L, int index, const char *name)
{
    return (size_t)field_integer(L, index, "variant.", name, 0, -1);
}

static const char *text_field(lua_State *L, int index, const char *name)
{
    return field_text(L, index, "variant.", name, NULL);
}

variant_description kernel_variant_at(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    const variant_description variant = {
        .library = text_field(L, index, "library"),
        .bind = text_field(L, index, "bind"),
        .ffn = text_field(L, index, "ffn"),
        .any_ffn = text_field(L, index, "any_ffn"),
        .project = text_field(L, index, "project"),
        .gather = text_field(L, index, "gather"),
        .public_ffn = text_field(L, index, "public_ffn"),
        .tile = size_field(L, index, "tile"),
        .chunk = size_field(L, index, "chunk"),
        .whole = size_field(L, index, "whole"),
        .scratch_bytes = size_field(L, index, "scratch_bytes"),
        .scratch_bytes_one = size_field(L, index, "scratch_bytes_one"),
        .weights_struct_bytes = size_field(L, index, "weights_struct_bytes"),
        .d = size_field(L, index, "d"),
        .d_out = size_field(L, index, "d_out"),
        .h = size_field(L, index, "h"),
        .tau = size_field(L, index, "tau"),
        .neighbours = size_field(L, index, "neighbours"),
    };
    if (variant.tile == 0 || variant.chunk < variant.tile)
        luaL_error(L, "variant: tile must be at least 1 and chunk at least tile");
    return variant;
}

/* Runs the variant over x[tokens][d] into a new y[tokens][d_out]; NULL with one line on failure. */
static float *compute(const variant_description *description, const char *blob_path, const float *x, size_t tokens, char *error,
                      size_t error_size)
{
    files_mapping blob;
    variant_bound variant;
    float *y = NULL;
    if (!blob_map(blob_path, &blob, error, error_size))
        return NULL;
    if (variant_load(&variant, description, blob_path, &blob, error, error_size)) {
        if (tokens <= SIZE_MAX / sizeof *y / description->d_out)
            y = malloc(tokens * description->d_out * sizeof *y + 1);
        if (y)
            variant.functions.ffn(variant.weights, x, y, tokens, variant.scratch);
        else
            files_error(error, error_size, "%s: not enough memory for %zu tokens", description->library, tokens);
        variant_unload(&variant);
    }
    files_unmap(&blob);
    return y;
}

static int run(lua_State *L)
{
    const variant_description variant = kernel_variant_at(L, 1);
    const char *blob = luaL_checkstring(L, 2), *input = luaL_checkstring(L, 3), *output = luaL_checkstring(L, 4);
    char error[ERROR_SIZE];
    size_t tokens = 0;
    float *x = npy_read_tokens(input, variant.d, &tokens, error, sizeof error), *y = NULL;
    bool done = false;
    if (x && (y = compute(&variant, blob, x, tokens, error, sizeof error)))
        done = npy_write_f32(output, tokens, variant.d_out, y, error, sizeof error);
    free(x);
    free(y);
    if (!done)
        return host_fail(L, error);
    lua_newtable(L);
    lua_pushinteger(L, (lua_Integer)tokens);
    lua_setfield(L, -2, "tokens");
    return 1;
}

/* kernel.check_input(input, d) -> tokens, whether they are converted from float64 | nil, message: whether `run` would read that file for a
   model of d inputs. */
static int check_input(lua_State *L)
{
    char error[ERROR_SIZE];
    size_t tokens;
    bool wide;
    if (!npy_check_tokens(luaL_checkstring(L, 1), (size_t)luaL_checkinteger(L, 2), &tokens, &wide, error, sizeof error))
        return host_fail(L, error);
    lua_pushinteger(L, (lua_Integer)tokens);
    lua_pushboolean(L, wide);
    return 2;
}

int luaopen_kernel(lua_State *L)
{
    const luaL_Reg functions[] = {{"run", run}, {"check_input", check_input}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
