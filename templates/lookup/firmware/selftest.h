//$ takes firmware
#ifndef $(names.macro("SELFTEST_H_INCLUDED"))
#define $(names.macro("SELFTEST_H_INCLUDED"))

#ifdef __cplusplus
extern "C" {
#endif

//$ if firmware.exact then
/* Compares $(names.ffn) with the integers that its arithmetic gives, for $(#firmware.vectors) tokens.
//$ else
/* Compares $(names.ffn) with what the layer's definition gives in double precision, for $(#firmware.vectors) tokens.
//$ end
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned
   Returns how many of $(#firmware.vectors * shape.d_out) outputs are wrong: 0 if all is well, all of them if the weights are damaged.
   Takes $(names.macro("SELFTEST_STACK_BYTES")) bytes of stack. Keeps one token's output in a static array. */
unsigned $(names.selftest)(void *scratch);

#ifdef __cplusplus
}
#endif

#endif
