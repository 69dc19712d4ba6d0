/* A compiled variant of a model; Lua module `kernel`. */
#include "kernel.h"

#include "gen/weights/file.h"
#include "gen/weights/npy.h"

#include <lauxlib.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_SIZE = 1024 };

static const char *text_field(lua_State *L, int index, const char *name)
{
    if (lua_getfield(L, index, name) != LUA_TSTRING)
        luaL_error(L, "variant.%s: must be a string", name);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

static size_t size_field(lua_State *L, int index, const char *name)
{
    int is_integer = 0;
    lua_getfield(L, index, name);
    const lua_Integer value = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer || value < 0)
        luaL_error(L, "variant.%s: must be an integer, at least 0", name);
    lua_pop(L, 1);
    return (size_t)value;
}

kernel_variant kernel_variant_at(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    const kernel_variant variant = {
        .isa = text_field(L, index, "isa"),
        .library = text_field(L, index, "library"),
        .bind = text_field(L, index, "bind"),
        .ffn = text_field(L, index, "ffn"),
        .project = text_field(L, index, "project"),
        .gather = text_field(L, index, "gather"),
        .public_ffn = text_field(L, index, "public_ffn"),
        .tile = size_field(L, index, "tile"),
        .chunk = size_field(L, index, "chunk"),
        .scratch_bytes = size_field(L, index, "scratch_bytes"),
        .weights_struct_bytes = size_field(L, index, "weights_struct_bytes"),
        .d = size_field(L, index, "d"),
        .d_out = size_field(L, index, "d_out"),
        .h = size_field(L, index, "h"),
        .tau = size_field(L, index, "tau"),
    };
    if (variant.tile == 0 || variant.chunk < variant.tile)
        luaL_error(L, "variant: tile must be at least 1 and chunk at least tile");
    return variant;
}

bool kernel_open(kernel *functions, const kernel_variant *variant, char *error, size_t error_size)
{
    void *address[5];
    const char *names[5] = {variant->bind, variant->ffn, variant->public_ffn, variant->project, variant->gather};
    void *library = dlopen(variant->library, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror(); /* usually starts with the path */
        const bool named = strncmp(reason, variant->library, strlen(variant->library)) == 0;
        return file_error(error, error_size, "%s%s%s", named ? "" : variant->library, named ? "" : ": ", reason);
    }
    for (size_t i = 0; i < 5; ++i) {
        address[i] = dlsym(library, names[i]);
        if (!address[i]) {
            dlclose(library);
            return file_error(error, error_size, "%s: no function %s", variant->library, names[i]);
        }
    }
    functions->library = library;
    memcpy(&functions->bind, &address[0], sizeof address[0]);
    memcpy(&functions->ffn, &address[1], sizeof address[1]);
    memcpy(&functions->public_ffn, &address[2], sizeof address[2]);
    memcpy(&functions->project, &address[3], sizeof address[3]);
    memcpy(&functions->gather, &address[4], sizeof address[4]);
    return true;
}

void kernel_close(kernel *functions)
{
    dlclose(functions->library);
}

static void *aligned_memory(size_t bytes)
{
    return aligned_alloc(KERNEL_ALIGN, (bytes / KERNEL_ALIGN + 1) * KERNEL_ALIGN);
}

/* Runs the variant over x[tokens][d] into a new y[tokens][d_out]; NULL with one line on failure. */
static float *compute(const kernel_variant *variant, const char *blob_path, const float *x, size_t tokens, char *error, size_t error_size)
{
    kernel functions;
    mapped_file blob;
    float *y = NULL;
    if (!kernel_open(&functions, variant, error, error_size))
        return NULL;
    if (!file_map(blob_path, &blob, error, error_size)) {
        kernel_close(&functions);
        return NULL;
    }
    void *weights = aligned_memory(variant->weights_struct_bytes), *scratch = aligned_memory(variant->scratch_bytes);
    const bool fits = tokens <= SIZE_MAX / sizeof *y / variant->d_out;
    y = weights && scratch && fits ? malloc(tokens * variant->d_out * sizeof *y + 1) : NULL;
    const int code = y ? functions.bind(blob.data, blob.bytes, weights) : 0;
    if (!y) {
        file_error(error, error_size, "%s: not enough memory for %zu tokens", variant->library, tokens);
    } else if (code != 0) {
        file_error(error, error_size, "%s: refused by %s with code %d", blob_path, variant->bind, code);
        free(y);
        y = NULL;
    } else {
        functions.ffn(weights, x, y, tokens, scratch);
    }
    free(weights);
    free(scratch);
    file_unmap(&blob);
    kernel_close(&functions);
    return y;
}

static int run(lua_State *L)
{
    const kernel_variant variant = kernel_variant_at(L, 1);
    const char *blob = luaL_checkstring(L, 2), *input = luaL_checkstring(L, 3), *output = luaL_checkstring(L, 4);
    char error[ERROR_SIZE];
    size_t tokens = 0, columns = 0;
    float *x = npy_read_f32(input, &tokens, &columns, error, sizeof error), *y = NULL;
    bool done = false;
    if (x && columns != variant.d)
        file_error(error, sizeof error, "%s: %zu columns: must be d = %zu", input, columns, variant.d);
    else if (x && (y = compute(&variant, blob, x, tokens, error, sizeof error)))
        done = npy_write_f32(output, tokens, variant.d_out, y, error, sizeof error);
    free(x);
    free(y);
    if (!done) {
        lua_pushnil(L);
        lua_pushstring(L, error);
        return 2;
    }
    lua_newtable(L);
    lua_pushinteger(L, (lua_Integer)tokens);
    lua_setfield(L, -2, "tokens");
    return 1;
}

int luaopen_kernel(lua_State *L)
{
    const luaL_Reg functions[] = {{"run", run}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
