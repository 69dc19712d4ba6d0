/* A compiled variant of a model: its shared library, the functions in it, and the weights that it is bound to. */
#include "harness/base/variant.h"

#include "harness/base/memory.h"

#include <dlfcn.h>

bool variant_open(variant_functions *functions, const variant_description *description, char *error, size_t error_size)
{
    void *address[6];
    const char *names[6] = {description->bind,       description->ffn,     description->any_ffn,
                            description->public_ffn, description->project, description->gather};
    /* Of an OpenMP build, threads wait in the code of libgomp: it must not go away under them. */
    void *library = dlopen(description->library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *reason = dlerror(); /* usually starts with the path */
        const bool named = strncmp(reason, description->library, strlen(description->library)) == 0;
        return files_error(error, error_size, "%s%s%s", named ? "" : description->library, named ? "" : ": ", reason);
    }
    for (size_t i = 0; i < 6; ++i) {
        address[i] = dlsym(library, names[i]);
        if (!address[i]) {
            dlclose(library);
            return files_error(error, error_size, "%s: no function %s", description->library, names[i]);
        }
    }
    functions->library = library;
    memcpy(&functions->bind, &address[0], sizeof address[0]);
    memcpy(&functions->ffn, &address[1], sizeof address[1]);
    memcpy(&functions->any_ffn, &address[2], sizeof address[2]);
    memcpy(&functions->public_ffn, &address[3], sizeof address[3]);
    memcpy(&functions->project, &address[4], sizeof address[4]);
    memcpy(&functions->gather, &address[5], sizeof address[5]);
    return true;
}

void variant_close(variant_functions *functions)
{
    dlclose(functions->library);
}

bool variant_load(variant_bound *variant, const variant_description *description, const char *blob_path, const files_mapping *blob,
                  char *error, size_t error_size)
{
    *variant = (variant_bound){.weights = NULL};
    if (!variant_open(&variant->functions, description, error, error_size))
        return false;
    variant->weights = aligned_memory(description->weights_struct_bytes);
    variant->scratch = aligned_memory(description->scratch_bytes);
    const bool memory = variant->weights && variant->scratch;
    const int code = memory ? variant->functions.bind(blob->data, blob->bytes, variant->weights) : 0;
    if (!memory)
        files_error(error, error_size, "%s: not enough memory", description->library);
    else if (code != 0)
        files_error(error, error_size, "%s: refused by %s with code %d", blob_path, description->bind, code);
    else
        return true;
    variant_unload(variant);
    return false;
}

void variant_unload(variant_bound *variant)
{
    free(variant->weights);
    free(variant->scratch);
    if (variant->functions.library)
        variant_close(&variant->functions);
    *variant = (variant_bound){.weights = NULL};
}

size_t variant_slots(const variant_description *description)
{
    return description->h * description->neighbours;
}

size_t variant_places(const variant_description *description, size_t tokens)
{
    return round_up(tokens, description->tile) * variant_slots(description);
}

size_t variant_place(const variant_description *description, size_t token, size_t slot)
{
    return (token / description->tile * variant_slots(description) + slot) * description->tile + token % description->tile;
}
