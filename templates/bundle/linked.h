//$ takes guard
#ifndef $(names.macro("LINKED_H_INCLUDED"))
#define $(names.macro("LINKED_H_INCLUDED"))

/* The weights of $(model) as a part of the program. */

#include "$(names.header)"

/* As linkers know it; lookupc_add_library gives each target a name of its own. */
#ifndef $(names.bind_linked)
#define $(names.bind_linked) $(names.guarded(names.bind_linked, guard))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* $(names.bind) of the blob that is linked into the program; returns what that returns. */
$(api)int $(names.bind_linked)($(names.weights) *weights);

#ifdef __cplusplus
}
#endif

#endif
