/* Functions of loaded libraries, by their names: dlsym without a cast from an object's address to a function's. */
#include "harness/base/symbol.h"

#include <dlfcn.h>
#include <string.h>

bool symbol_find(void *library, const char *name, void *function)
{
    void *const address = dlsym(library, name);
    if (address)
        memcpy(function, &address, sizeof address);
    return address != NULL;
}
