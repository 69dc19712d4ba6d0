/* Shared libraries of compiled models: loaded, their functions found by name, their weights bound to a blob. */
#ifndef LOOKUPC_HARNESS_BASE_LIBRARY_H
#define LOOKUPC_HARNESS_BASE_LIBRARY_H

#include "gen/host/files.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *path; /* must outlive it */
    void *handle;
} loaded_library;

/* How a library is loaded, beside RTLD_NOW. */
enum {
    LIBRARY_ALONE = 0, /* nobody else sees its functions */
    LIBRARY_STAYS = 1, /* also once it is closed: of an OpenMP build, threads wait in the code of libgomp */
    LIBRARY_SHOWN = 2, /* its functions stand before those of libraries that are loaded later */
};

/* Everything that fails does so with one line that starts with a path. */
bool library_open(loaded_library *l, const char *path, int how, char *error, size_t error_size);

/* Whether libraries can be loaded from where `path` is: not from a file system that is mounted noexec. */
bool library_loads_from(const char *path);

/* Stores the function of that name in the pointer to a function at `function`. */
bool library_find(const loaded_library *l, const char *name, void *function, char *error, size_t error_size);

/* Fills `weights`, the model's own struct, by the function `bind` from the mapped file, which must outlive it. */
bool library_bind(const loaded_library *l, const char *bind, const char *blob_path, const files_mapping *blob, void *weights, char *error,
                  size_t error_size);

/* All zeros are allowed. */
void library_close(loaded_library *l);

#endif
