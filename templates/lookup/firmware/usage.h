//$ takes
     static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))] __attribute__((aligned($(names.macro("ALIGN"))))); one for each thread
     static $(names.weights) weights;
     if ($(names.bind_linked)(&weights) == $(names.macro("OK")))
         $(names.ffn)(&weights, x, y, 1, scratch);
