/* Shared libraries of compiled models: loaded, their functions found by name, their weights bound to a blob. */
#include "harness/base/library.h"

#include "harness/base/amx.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/statvfs.h>

bool library_open(loaded_library *l, const char *path, int how, char *error, size_t error_size)
{
    amx_request(); /* its kernels may use AMX */
    const int stays = how & LIBRARY_STAYS ? RTLD_NODELETE : 0, shown = how & LIBRARY_SHOWN ? RTLD_GLOBAL : RTLD_LOCAL;
    *l = (loaded_library){path, dlopen(path, RTLD_NOW | shown | stays)};
    if (l->handle)
        return true;
    const char *reason = dlerror(); /* usually starts with the path */
    if (!library_loads_from(path))
        return files_error(error, error_size, "%s: is on a file system that is mounted noexec: TMPDIR=FOLDER names another place", path);
    const bool named = strncmp(reason, path, strlen(path)) == 0;
    return files_error(error, error_size, "%s%s%s", named ? "" : path, named ? "" : ": ", reason);
}

bool library_loads_from(const char *path)
{
    struct statvfs facts;
    return statvfs(path, &facts) != 0 || (facts.f_flag & ST_NOEXEC) == 0;
}

bool library_find(const loaded_library *l, const char *name, void *function, char *error, size_t error_size)
{
    void *const address = dlsym(l->handle, name);
    if (!address)
        return files_error(error, error_size, "%s: no function %s", l->path, name);
    memcpy(function, &address, sizeof address); /* no cast from an object's address to a function's */
    return true;
}

bool library_bind(const loaded_library *l, const char *bind, const char *blob_path, const files_mapping *blob, void *weights, char *error,
                  size_t error_size)
{
    int (*function)(const void *, size_t, void *) = NULL;
    if (!library_find(l, bind, &function, error, error_size))
        return false;
    const int code = function(blob->data, blob->bytes, weights);
    return code == 0 || files_error(error, error_size, "%s: refused by %s with code %d", blob_path, bind, code);
}

void library_close(loaded_library *l)
{
    if (l->handle)
        dlclose(l->handle);
    *l = (loaded_library){0};
}
