//$ takes promise, plan, packed_bytes, facts
//$ local shared = plan.causal and { names.prefill, names.prefill_all } or { names.encode, names.encode_batch }
#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

$(include("templates/model/layer.h"))

   $(promise)
   All are reentrant for different $(plan.causal and "states and " or "")scratch. Where all that includes this header is
   compiled with -fopenmp -D$(names.macro("OPENMP"))=N, $(shared[1]) and $(shared[2]) share their work among up to N
   threads, with the same results, bit for bit.

   Read the weights file into `blob`, or map it: mmap aligns, too. Each thread needs a scratch of its
   own$(plan.causal and ", each sequence a state" or "").

     static _Alignas($(names.macro("ALIGN"))) unsigned char blob[$(names.macro("WEIGHTS_BYTES"))];
     static _Alignas($(names.macro("ALIGN"))) unsigned char state[$(names.macro("STATE_BYTES"))]; //$ if plan.causal
     static _Alignas($(names.macro("ALIGN"))) unsigned char scratch[$(names.macro("SCRATCH_BYTES"))];
     $(names.weights) weights;

     int status = $(names.bind)(blob, sizeof blob, &weights);
//$ if plan.causal then
     $(names.start)(state);
     if (status == $(names.macro("OK")))
         status = $(names.prefill)(&weights, state, ids, n, logits, scratch);
     if (status == $(names.macro("OK")))
         status = $(names.step)(&weights, state, next_id, logits, scratch);
//$ else
     if (status == $(names.macro("OK")))
         status = $(names.encode)(&weights, ids, n, y, scratch);
//$ end

   In C++ write alignas($(names.macro("ALIGN"))) instead of _Alignas($(names.macro("ALIGN"))). */

#include <stddef.h>
#include <stdint.h>

$(include("templates/model/shape.h"))
#define $(names.macro("WEIGHTS_BYTES")) $(packed_bytes)u /* of a blob */
$(include("templates/bundle/openmp.h", { shared = shared, works_in = "a call works in" }))
$(include("templates/model/sizes.h")) //$ if plan.causal or facts

$(include("templates/bundle/binding.h"))

$(include("templates/model/calls.h"))

$(include("templates/bundle/closing.h"))

#endif
