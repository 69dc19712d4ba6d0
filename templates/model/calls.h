//$ takes plan, facts
//$ local pooled = plan.output.pool
//$ if plan.causal then
/* Makes `state` an empty sequence: $(names.macro("STATE_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned, which
   need not be cleared before. A state is flat:
   a copy of its bytes is another sequence, which goes on where this one is. */
$(api)void $(names.start)(void *state);

/* Tokens that the sequence has so far. */
$(api)size_t $(names.position)(const void *state);

/* Appends n ids to the sequence.
   weights  filled by $(names.bind)
   state    the sequence
   ids      [n]
   logits   [$(names.macro("D_OUT"))] of the last of them, any float alignment, not written if n is 0; may be null
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned; contents do not matter
   Nothing may overlap. Returns $(names.macro("OK")); or, and then nothing is written,
   $(names.macro("ERROR_POSITION")) if the sequence would be longer than
   $(names.macro("CONTEXT")), $(names.macro("ERROR_ID")) if one of the ids is none. */
$(api)int $(names.prefill)(const $(names.weights) *weights, void *state, const int32_t *ids, size_t n, float *logits, void *scratch);

/* The same; logits are [n][$(names.macro("D_OUT"))], those of every token. */
$(api)int $(names.prefill_all)(const $(names.weights) *weights, void *state, const int32_t *ids, size_t n, float *logits, void *scratch);

/* Appends one id; $(names.macro("STEP_SCRATCH_BYTES")) of scratch are enough. */
$(api)int $(names.step)(const $(names.weights) *weights, void *state, int32_t id, float *logits, void *scratch);
//$ else
//$ local what = plan.output.head and (plan.model.output.classes and "The scores" or "The logits")
/* $(what or pooled and "The vector" or "The vectors") of a sequence.
   weights  filled by $(names.bind)
   ids      [n]; n is at most $(names.macro("CONTEXT"))$(pooled and ", at least 1" or "")
   y        $(pooled and "" or "[n]")[$(names.macro("D_OUT"))], any float alignment
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned; contents do not matter
   Nothing may overlap. Returns $(names.macro("OK")); or, and then nothing is written,
   $(names.macro("ERROR_POSITION")) for another n, $(names.macro("ERROR_ID")) if one of
   the ids is none. */
$(api)int $(names.encode)(const $(names.weights) *weights, const int32_t *ids, size_t n, float *y, void *scratch);

//$ local rows = pooled and "" or ", a row by each id: those before offsets[0] are not written"
/* The same for several sequences: sequence s has the ids number offsets[s] … offsets[s + 1] - 1.
   ids      [offsets[sequences]]; those before offsets[0] are not read
   offsets  [sequences + 1], not falling; the first is mostly 0
   y        $(pooled and "[sequences]" or "[offsets[sequences]]")[$(names.macro("D_OUT"))]$(rows) */
$(api)int $(names.encode_batch)(const $(names.weights) *weights, const int32_t *ids, const size_t *offsets,
    size_t sequences, float *y, void *scratch);
//$ end
//$ if facts then

$(include("templates/tokenizer/functions.h"))
//$ end
