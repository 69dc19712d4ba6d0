//$ takes promise, scratch_bytes, packed_bytes
#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

$(include("templates/integer/layer.h"))

   $(promise)
   None uses floating point. All are reentrant.

     static _Alignas($(names.macro("ALIGN"))) unsigned char blob[$(names.macro("WEIGHTS_BYTES"))]; the weights file, for example in flash
     static _Alignas($(names.macro("ALIGN"))) unsigned char scratch[$(names.macro("SCRATCH_BYTES"))]; one for each thread
     $(names.weights) weights;
     if ($(names.bind)(blob, sizeof blob, &weights) == $(names.macro("OK")))
         $(names.ffn)(&weights, x, y, tokens, scratch);

   In C++ write alignas($(names.macro("ALIGN"))) instead of _Alignas($(names.macro("ALIGN"))). */

#include <stddef.h>
#include <stdint.h>

$(include("templates/integer/shape.h"))
#define $(names.macro("SCRATCH_BYTES")) $(scratch_bytes)u /* that $(names.ffn) works in */
#define $(names.macro("WEIGHTS_BYTES")) $(packed_bytes)u /* of a blob */

$(include("templates/bundle/binding.h"))

$(include("templates/integer/ffn.h"))

$(include("templates/bundle/closing.h"))

$(include("templates/integer/floats.h"))

#endif
