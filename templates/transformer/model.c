//$ takes isas, variants, context
$(include("templates/bundle/bind.c"))

static void $(model)_run(const $(names.weights) *weights, void *cache, const float *x, float *y, size_t first, size_t tokens, void *scratch)
{
//$ if #isas > 1 then
    switch (weights->isa) {
//$ for i = #variants, 2, -1 do
    case $(i - 1): $(variants[i].names.blocks)(weights, (unsigned char *) cache, x, y, first, tokens, scratch); break;
//$ end
    default: $(variants[1].names.blocks)(weights, (unsigned char *) cache, x, y, first, tokens, scratch); break;
    }
//$ else
    $(variants[1].names.blocks)(weights, (unsigned char *) cache, x, y, first, tokens, scratch);
//$ end
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
//$ else
int $(names.encode)(const $(names.weights) *weights, void *cache, const float *x, float *y, size_t tokens, void *scratch)
{
    if (tokens > $(context))
        return $(names.macro("ERROR_POSITION"));
    $(model)_run(weights, cache, x, y, 0, tokens, scratch);
    return $(names.macro("OK"));
}
//$ end
