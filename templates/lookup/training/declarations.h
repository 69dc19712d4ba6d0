//$ takes training, variants
//$ local layer = shape.kind == "bh4" and "LookupFFN with BH4, blocks of " .. shape.block or "LookupFFN with a dense projection"
/* Training of a $(layer): sizes in floats unless they say bytes. */
#define $(names.constant("TRAIN_TILE")) $(training.tile)u /* tokens: ranges of tokens begin at multiples of it */
#define $(names.constant("TRAIN_SLOTS")) $(training.slots)u /* rows that a token takes */
#define $(names.constant("TRAIN_Z")) $(training.z)u /* of a token's z */
#define $(names.constant("TRAIN_PREPARED")) $(training.prepared)u /* of packed weights */
#define $(names.constant("TRAIN_SUMS")) $(training.sums.floats)u /* of the gradients that one thread sums */
#define $(names.constant("TRAIN_ROW")) $(training.pitch)u /* from row to row of the tables */
//$ local scratch = names.constant("TRAIN_SCRATCH_BYTES") .. "(tokens)"
#define $(scratch) ($(training.scratch_bytes)u + $(8 * shape.neighbours)u * (size_t) (tokens)) /* of one thread */

/* The parameters of one layer, laid out as in a checkpoint but for the pitch of the tables. */
typedef struct $(training.names.parameters) {
    const float *projection; /* $(training.projection_text) */
    const float *projection_bias; /* [$(shape.bits)] */
    const float *bias; /* [$(shape.d_out)] */
    float *tables; /* [$(shape.h)][$(shape.rows)][$(training.pitch)], rows of $(shape.d_out), 64-byte aligned */
    /* row-wise Adagrad: [$(shape.h)][$(shape.rows)] sums of mean squares; lazy Adam:
       [$(shape.h)][$(shape.rows)][2][$(training.pitch)] moments; zeros at first */
    float *state;
    const float *prepared; /* packed weights, 64-byte aligned, which the kernel `prepare` writes */
} $(training.names.parameters);

/* How rows of the tables move against their gradient g. Rows that no token meets stay as they are.
   Adagrad:  state += mean of g g; row -= rate g / sqrt(state + epsilon)
   Adam:     first += (1 - beta1) (g - first), second += (1 - beta2) (g g - second);
             row -= rate correction1 first / sqrt(correction2 second + epsilon), correction_i = 1 / (1 - beta_i^step)
   epsilon   at least 1e-30 */
typedef struct $(training.names.rates) {
    float rate, epsilon, beta1, beta2, correction1, correction2;
    int adam; /* 0: Adagrad */
} $(training.names.rates);

/* The tokens of a step, and what it keeps of them: see above. A call needs what it reads or writes alone. */
typedef struct $(training.names.tokens) {
    const float *x, *dy; /* rows of the input, and of the gradient of the output */
    float *y, *dx;       /* rows of the output, and of the gradient of the input */
    float *z;
    uint16_t *code;
    float *score, *slope;
    uint32_t *uses; /* may be null */
    size_t count;   /* of all tokens */
} $(training.names.tokens);
//$ for _, v in ipairs(variants) do
//$ local t = v.training

/* $(v.isa.name): once a step, packs the weights as `lookupc pack` does; forward of some tokens; backward of the gather
   for all tokens and some tables, updating rows or listing (row, gradient); the update from such a list; backward of
   the projection for some tokens; gradients out of the sums of all threads. */
$(api)void $(t.names.prepare)(const $(training.names.parameters) *parameters, float *prepared, void *scratch);
$(api)void $(t.names.forward)(const $(training.names.parameters) *parameters, const $(training.names.tokens) *tokens,
    size_t first, size_t count, void *scratch);
$(api)void $(t.names.rows)(const $(training.names.parameters) *parameters, const $(training.names.rates) *rates,
    const $(training.names.tokens) *tokens, size_t first_table, size_t end_table, void *scratch);
$(api)size_t $(t.names.list_rows)(const $(training.names.parameters) *parameters, const $(training.names.tokens) *tokens,
    size_t first_table, size_t end_table, uint32_t *row, float *gradient, void *scratch);
$(api)void $(t.names.apply_rows)(const $(training.names.parameters) *parameters, const $(training.names.rates) *rates,
    const uint32_t *row, const float *gradient, size_t count);
$(api)void $(t.names.project)(const $(training.names.parameters) *parameters, const $(training.names.tokens) *tokens,
    size_t first, size_t count, float *sums, void *scratch);
$(api)void $(t.names.finish)(const float *sums, size_t parts, float *d_projection, float *d_projection_bias, float *d_bias, void *scratch);
$(api)void $(t.names.load)(const float *x, size_t tokens, float *loaded);
//$ end
