//$ takes
#ifndef $(names.macro("LINKED_H_INCLUDED"))
#define $(names.macro("LINKED_H_INCLUDED"))

/* The weights of $(model) as a part of the program. */

#include "$(names.header)"

#ifdef __cplusplus
extern "C" {
#endif

/* $(names.bind) of the blob that is linked into the program; returns what that returns. */
int $(names.bind_linked)($(names.weights) *weights);

#ifdef __cplusplus
}
#endif

#endif
