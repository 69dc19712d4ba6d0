/* A compiled variant of a model: its shared library, the functions in it, and the blob that it is bound to.
   Lua module `kernel`. */
#ifndef LOOKUPC_HARNESS_KERNEL_H
#define LOOKUPC_HARNESS_KERNEL_H

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KERNEL_ALIGN = 64 }; /* bytes: blob, scratch, code, score */

/* The functions of emitted code; `weights` is a pointer to the model's own struct <m>_weights. */
typedef int kernel_bind(const void *blob, size_t bytes, void *weights);
typedef void kernel_ffn(const void *weights, const float *x, float *y, size_t tokens, void *scratch);
typedef void kernel_project(const void *weights, const float *x, size_t tokens, uint16_t *code, float *score, void *scratch);
typedef void kernel_gather(const void *weights, const uint16_t *code, const float *score, float *y, size_t tokens);

/* What a job says of a variant; the strings belong to the job. */
typedef struct {
    const char *isa, *library;                              /* instruction set, path of the shared library */
    const char *bind, *ffn, *project, *gather, *public_ffn; /* names of the functions */
    size_t tile, chunk;                                     /* tokens */
    size_t scratch_bytes, weights_struct_bytes;
    size_t d, d_out, h, tau;
} kernel_variant;

typedef struct {
    void *library;
    kernel_bind *bind;
    kernel_ffn *ffn, *public_ffn;
    kernel_project *project;
    kernel_gather *gather;
} kernel;

/* Reads the variant at `index` of the stack; the table must stay referenced as long as the variant is used. Raises a Lua error for a
   field that is absent or of the wrong type. */
kernel_variant kernel_variant_at(lua_State *L, int index);

/* Loads the library and finds the functions. Fails with one line that starts with the library's path. */
bool kernel_open(kernel *functions, const kernel_variant *variant, char *error, size_t error_size);

void kernel_close(kernel *functions);

/* kernel.run(variant, blob path, input.npy, output.npy) -> { tokens = n } | nil, message: y for every row of the input. */
int luaopen_kernel(lua_State *L);

#endif
