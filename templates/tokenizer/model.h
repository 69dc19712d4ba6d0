//$ takes facts, align, packed_bytes
#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

/* $(names.model): a tokenizer, $(facts.kind), $(facts.pieces) pieces. No heap, no library, no global state. */

#include <stddef.h>
#include <stdint.h>

#define $(names.macro("ALIGN")) $(align) /* of the blob, in bytes */
#define $(names.macro("WEIGHTS_BYTES")) $(packed_bytes)u /* of a blob */
$(include("templates/tokenizer/tokenizer.h"))

$(include("templates/bundle/binding.h"))

$(include("templates/tokenizer/functions.h"))

$(include("templates/bundle/closing.h"))

#endif
