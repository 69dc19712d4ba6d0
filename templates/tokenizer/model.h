//$ takes facts, align, packed_bytes
#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

/* $(names.model): a tokenizer, $(facts.kind), $(facts.pieces) pieces. No heap, no library, no global state.

   Read the blob that `lookupc pack` writes, or map it, and bind it once. Each thread needs a scratch of its own.

     static _Alignas($(names.macro("ALIGN"))) unsigned char blob[$(names.macro("WEIGHTS_BYTES"))];
     static _Alignas(8) unsigned char scratch[$(names.macro("TOKENIZE_SCRATCH"))(1000)];
     int32_t ids[1000];
     $(names.weights) weights;

     if ($(names.bind)(blob, sizeof blob, &weights) == $(names.macro("OK")))
         n = $(names.tokenize)(&weights, text, bytes, ids, 1000, scratch, sizeof scratch); */

#include <stddef.h>
#include <stdint.h>

#define $(names.macro("ALIGN")) $(align) /* of the blob, in bytes */
#define $(names.macro("WEIGHTS_BYTES")) $(packed_bytes)u /* of a blob */
$(include("templates/tokenizer/tokenizer.h"))

$(include("templates/bundle/binding.h"))

$(include("templates/tokenizer/functions.h"))

$(include("templates/bundle/closing.h"))

#endif
