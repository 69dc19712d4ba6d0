//$ takes plan, cached, state_bytes, step_scratch_bytes, facts
//$ if plan.causal then
#define $(names.macro("STATE_BYTES")) $(state_bytes)u /* of a sequence: its position, $(cached) */
#define $(names.macro("STEP_SCRATCH_BYTES")) $(step_scratch_bytes)u /* that $(names.step) works in */
//$ end
$(include("templates/tokenizer/tokenizer.h")) //$ if facts
