//$ takes promise, scratch_bytes, packed_bytes
#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

$(include("templates/integer/layer.h"))

//$ lines("   ", promise)
   None uses floating point. All are reentrant.

     static unsigned char blob[...];                    the weights file, $(names.macro("ALIGN"))-byte aligned, for example in flash
     static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))]; $(names.macro("ALIGN"))-byte aligned, one for each thread
     $(names.weights) weights;
     if ($(names.bind)(blob, sizeof blob, &weights) == $(names.macro("OK")))
         $(names.ffn)(&weights, x, y, tokens, scratch); */

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
