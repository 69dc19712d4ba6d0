//$ takes plan
   Bind once: it checks every bit of the weights. Each thread needs a scratch of its own$(plan.causal and ", each sequence a state" or "").

//$ if plan.causal then
     static unsigned char state[$(names.macro("STATE_BYTES"))] __attribute__((aligned($(names.macro("ALIGN")))));
//$ end
     static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))] __attribute__((aligned($(names.macro("ALIGN")))));
     static $(names.weights) weights;

     int status = $(names.bind_linked)(&weights);
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
