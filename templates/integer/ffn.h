//$ takes
/* y = LookupFFN(x) for any number of tokens, 0 included. Cannot fail and cannot overflow, whatever x is,
   and checks nothing: weights that $(names.bind) did not fill, or scratch that is not aligned (malloc's may not be), crash.
   weights  filled by $(names.bind)
   x        [tokens][$(shape.d)] in units of $(names.macro("X_SCALE"))
   y        [tokens][$(shape.d_out)] in units of $(names.macro("Y_SCALE")); must not overlap x
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned, overlapping nothing; contents do not matter */
$(api)void $(names.ffn)(const $(names.weights) *weights, const int16_t *x, int32_t *y, size_t tokens, void *scratch);
