//$ takes firmware, causal, compared
#ifndef $(names.macro("SELFTEST_H_INCLUDED"))
#define $(names.macro("SELFTEST_H_INCLUDED"))

#ifdef __cplusplus
extern "C" {
#endif

//$ if causal then
/* Gives the model $(#firmware.vectors) recorded sequences, by $(names.prefill) and by $(names.step), and compares
   logits with what its definition gives in double precision.
   state    $(names.macro("STATE_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned; overwritten
//$ else
/* Gives the model $(#firmware.vectors) recorded sequences and compares results with what its definition gives in double precision.
//$ end
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned
   Returns how many of $(compared) values are wrong: 0 if all is well, all of them if the weights are damaged.
   Takes $(names.macro("SELFTEST_STACK_BYTES")) bytes of stack. Keeps results in a static array. */
unsigned $(names.selftest)($(causal and "void *state, " or "")void *scratch);

#ifdef __cplusplus
}
#endif

#endif
