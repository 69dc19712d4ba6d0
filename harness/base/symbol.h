/* Functions of loaded libraries, by their names. */
#ifndef LOOKUPC_HARNESS_BASE_SYMBOL_H
#define LOOKUPC_HARNESS_BASE_SYMBOL_H

#include <stdbool.h>

/* Stores the function of that name of `library`, which dlopen has returned, in the pointer to a function at `function`. False: the library
   has none, and the pointer stays as it is. */
bool symbol_find(void *library, const char *name, void *function);

#endif
