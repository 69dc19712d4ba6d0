//$ takes context, tokens_parameters, tile
//$ local given = shape.sequences and "offsets, sequences" or "first, tokens"
$(include("templates/bundle/bind.c"))

static void $(model)_run(const $(names.weights) *weights, void *cache, const float *x, float *y, $(tokens_parameters), void *scratch)
{
//$ local function call(v) return v.names.blocks .. "(weights, (unsigned char *) cache, x, y, " .. given .. ", scratch)" end
$(include("templates/bundle/by_isa.c", { call = call }))
}

//$ if shape.causal then
int $(names.decode)(const $(names.weights) *weights, void *cache, const float *x, float *y, size_t position, void *scratch)
{
    return $(names.prefill)(weights, cache, x, y, position, 1, scratch);
}

int $(names.prefill)(const $(names.weights) *weights, void *cache, const float *x, float *y, size_t first, size_t tokens, void *scratch)
{
    if (tokens > $(context) || first > $(context) - tokens)
        return $(names.macro("ERROR_POSITION"));
    $(model)_run(weights, cache, x, y, first, tokens, scratch);
    return $(names.macro("OK"));
}
//$ elseif shape.sequences then
int $(names.encode_batch)(const $(names.weights) *weights, void *cache, const float *x, float *y, const size_t *offsets,
    size_t sequences, void *scratch)
{
    size_t positions = 0;

    for (size_t sequence = 0; sequence < sequences; ++sequence) {
        const size_t tokens = offsets[sequence + 1] - offsets[sequence];
        if (offsets[sequence + 1] < offsets[sequence] || tokens > $(names.macro("CONTEXT")))
            return $(names.macro("ERROR_POSITION"));
        positions += (tokens + $(tile - 1)) / $(tile) * $(tile);
        if (positions > $(names.macro("POSITIONS")))
            return $(names.macro("ERROR_POSITION"));
    }
    $(model)_run(weights, cache, x, y, offsets, sequences, scratch);
    return $(names.macro("OK"));
}
//$ else
int $(names.encode)(const $(names.weights) *weights, void *cache, const float *x, float *y, size_t tokens, void *scratch)
{
    if (tokens > $(context))
        return $(names.macro("ERROR_POSITION"));
    $(model)_run(weights, cache, x, y, 0, tokens, scratch);
    return $(names.macro("OK"));
}
//$ end
