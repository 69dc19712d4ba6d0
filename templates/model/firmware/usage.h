//$ takes whole
//$ if whole.causal then
     static unsigned char state[$(names.macro("STATE_BYTES"))] __attribute__((aligned($(names.macro("ALIGN"))))); one for each sequence
//$ end
     static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))] __attribute__((aligned($(names.macro("ALIGN"))))); one for each thread
     static $(names.weights) weights;
     if ($(names.bind_linked)(&weights) == $(names.macro("OK"))) {
//$ if whole.causal then
         $(names.start)(state);
         status = $(names.prefill)(&weights, state, ids, n, logits, scratch);
         status = $(names.step)(&weights, state, next_id, logits, scratch);
//$ else
         status = $(names.encode)(&weights, ids, n, y, scratch);
//$ end
     }
