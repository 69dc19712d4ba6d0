//$ takes prologue, kernels, normalise, symbol, in_scratch, slots_text
//$ lines(prologue)

/* Rows of the tables and scores of one token.
   weights  bound weights
   x        [$(shape.d)]
   row      $(slots_text); score likewise
   scratch  64-byte aligned; none may overlap. Cannot fail. */
void $(kernels.names.project)(const $(names.weights) *weights, const int16_t *x, uint32_t *row, int32_t *score, void *scratch)
{
//$ for _, buffer in ipairs(kernels.buffers) do
//$ if buffer.name ~= "row" and buffer.name ~= "score" then
    $(buffer.storage) *$(buffer.name) = $(in_scratch(buffer.name, buffer.storage));
//$ end
//$ end

    $(kernels.names.normalise)(x, normalised); //$ if normalise
    $(kernels.names.projection)(weights, $(normalise and "normalised" or "x"), $(shape.kind == "bh4" and "values, sums, " or "")z);
    $(kernels.names.hash)(weights, z, row, score);
}

/* The whole layer, token by token: y = LookupFFN(x); see $(names.header). */
void $(symbol)(const $(names.weights) *weights, const int16_t *x, int32_t *y, size_t tokens, void *scratch)
{
    uint32_t *row = $(in_scratch("row", "uint32_t"));
    int32_t *score = $(in_scratch("score", "int32_t"));

    for (size_t token = 0; token < tokens; ++token, x += $(shape.d), y += $(shape.d_out)) {
        $(kernels.names.project)(weights, x, row, score, scratch);
        $(kernels.names.gather)(weights, row, score, y);
    }
}
