//$ takes variants, norm, constants
$(include("templates/bundle/constants.h", { constants = constants }))
//$ for _, v in ipairs(variants) do
//$ local kernels = v.stages[1]

/* $(v.isa.name): $(norm and "normalise, " or "")project, hash and gather one token; rows and scores; the whole layer. */
void $(kernels.names.normalise)(const int16_t *restrict x, int16_t *restrict normalised); //$ if norm
void $(kernels.names.projection)(const $(names.weights) *weights,
    const int16_t *restrict x,$(shape.kind == "bh4" and " int16_t *restrict values, int32_t *restrict sums," or "") int32_t *restrict z);
void $(kernels.names.hash)(const $(names.weights) *weights, const int32_t *restrict z, uint32_t *restrict row, int32_t *restrict score);
void $(kernels.names.gather)(const $(names.weights) *weights, const uint32_t *restrict row,
    const int32_t *restrict score, int32_t *restrict y);
void $(kernels.names.project)(const $(names.weights) *weights, const int16_t *x, uint32_t *row, int32_t *score, void *scratch);
void $(kernels.names.ffn)(const $(names.weights) *weights, const int16_t *x, int32_t *y, size_t tokens, void *scratch);
//$ end
