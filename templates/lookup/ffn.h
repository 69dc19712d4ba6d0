//$ takes floats, norm, alias_text, input, output, scratch_bytes_one
//$ if floats then
/* y = LookupFFN(x) for any number of tokens, 0 included. Cannot fail, and checks nothing: weights that $(names.bind) did
   not fill, or scratch that is not aligned (malloc's may not be), crash.
   weights  filled by $(names.bind)
   x        [tokens][$(shape.d)] floats, any float alignment
   y        [tokens][$(shape.d_out)] floats, any float alignment, best 64 bytes; $(alias_text)
//$ local of_one = scratch_bytes_one and "of which a call of one token needs " .. names.macro("SCRATCH_BYTES_ONE") .. ", "
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, $(of_one or "")$(names.macro("ALIGN"))-byte aligned, overlapping
            nothing; contents do not matter
   The squares of x - mean must not overflow float: keep |x| below 1e18. //$ if norm
   A NaN or an infinity in x makes that token's y what IEEE arithmetic gives, mostly NaN; other tokens are not touched. */
//$ else
/* y = LookupFFN(x) for any number of tokens, 0 included. Cannot fail and cannot overflow, whatever x is,
   and checks nothing: weights that $(names.bind) did not fill, or scratch that is not aligned (malloc's may not be), crash.
   weights  filled by $(names.bind)
   x        [tokens][$(shape.d)] in units of $(names.macro("X_SCALE"))
   y        [tokens][$(shape.d_out)] in units of $(names.macro("Y_SCALE")); must not overlap x
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned, overlapping nothing; contents do not matter */
//$ end
$(api)void $(names.ffn)(const $(names.weights) *weights, const $(input) *x, $(output) *y, size_t tokens, void *scratch);
