/* The files embedded in the program: Lua modules, templates and the licence, by their path in the repository. */
#ifndef LOOKUPC_GEN_RESOURCES_H
#define LOOKUPC_GEN_RESOURCES_H

#include <stddef.h>

typedef struct {
    const char *name; /* "templates/lookup/shared/gather.c" */
    const char *bytes;
    size_t size;
    const char *bytecode; /* of a Lua module, or of a template's Lua; NULL: there is none */
    size_t bytecode_size;
} resource;

/* Sorted by name; made by gen/host/embed.lua when the program is built. */
extern const resource resources[];
extern const size_t resource_count;

#endif
