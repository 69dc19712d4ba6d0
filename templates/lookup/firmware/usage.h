//$ takes
     static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))]; $(names.macro("ALIGN"))-byte aligned, one for each thread
     static $(names.weights) weights;
     if ($(names.bind_linked)(&weights) == $(names.macro("OK")))
         $(names.ffn)(&weights, x, y, 1, scratch);
