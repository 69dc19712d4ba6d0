//$ takes promise, floats, integers, openmp, scratch_bytes, scratch_bytes_one, packed_bytes
#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

$(include("templates/lookup/layer.h"))

   $(promise)
//$ if openmp then
   All are reentrant. Where all that includes this header is compiled with -fopenmp -D$(names.macro("OPENMP"))=N,
   $(names.ffn) shares large calls among up to N threads, with the same results, bit for bit.
//$ else
   None uses floating point. All are reentrant.
//$ end

//$ local one = scratch_bytes_one and ", of " .. names.macro("SCRATCH_BYTES_ONE") .. " bytes where all its calls are of one token"
   Read the weights file into `blob`, or map it: mmap aligns, too. Each thread needs a scratch of its own$(one or "").

     static _Alignas($(names.macro("ALIGN"))) unsigned char blob[$(names.macro("WEIGHTS_BYTES"))];
     static _Alignas($(names.macro("ALIGN"))) unsigned char scratch[$(names.macro("SCRATCH_BYTES"))];
     $(names.weights) weights;

     if ($(names.bind)(blob, sizeof blob, &weights) == $(names.macro("OK")))
         $(names.ffn)(&weights, x, y, tokens, scratch);

   In C++ write alignas($(names.macro("ALIGN"))) instead of _Alignas($(names.macro("ALIGN"))). */

#include <stddef.h>
#include <stdint.h> //$ if integers

$(include("templates/lookup/shape.h"))
//$ if openmp then
$(include("templates/bundle/openmp.h", { shared = { names.ffn }, works_in = names.ffn .. " works in" }))
#define $(names.macro("SCRATCH_BYTES_ONE")) $(scratch_bytes_one)u /* that a call of one token works in */
//$ else
#define $(names.macro("SCRATCH_BYTES")) $(scratch_bytes)u /* that $(names.ffn) works in */
//$ end
#define $(names.macro("WEIGHTS_BYTES")) $(packed_bytes)u /* of a blob */

$(include("templates/bundle/binding.h"))

$(include("templates/lookup/ffn.h"))

$(include("templates/bundle/closing.h"))
//$ if not floats then

$(include("templates/lookup/integer/floats.h"))
//$ end

#endif
