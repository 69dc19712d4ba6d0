//$ takes
   Bind once: it checks every bit of the weights. Each thread needs a scratch of its own.

     static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))] __attribute__((aligned($(names.macro("ALIGN")))));
     static $(names.weights) weights;

     if ($(names.bind_linked)(&weights) == $(names.macro("OK")))
         $(names.ffn)(&weights, x, y, 1, scratch);
