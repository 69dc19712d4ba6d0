//$ takes plan, context, align
#define $(names.macro("VOCAB")) $(shape.vocab) /* ids are 0 to this less 1 */
#define $(names.macro("D_OUT")) $(shape.d_out) /* values $(plan.output.pool and "a sequence" or "a token") */
#define $(names.macro("CONTEXT")) $(context) /* tokens of a sequence */
#define $(names.macro("LAYERS")) $(plan.layers) /* blocks */
#define $(names.macro("ALIGN")) $(align) /* of blob$(plan.causal and ", state" or "") and scratch, in bytes */
