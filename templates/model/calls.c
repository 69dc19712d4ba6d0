//$ takes plan, context, facts, threads
//$ if threads then
#ifdef $(names.macro("OPENMP"))
/* Parts that `tokens` tokens are shared in: each chunk whole ones of `part` tokens, the last of them up to twice as many. */
static size_t $(model)_parts(size_t tokens, size_t chunk, size_t part)
{
    const size_t rest = tokens % chunk, of_rest = rest > 0 && rest < part ? 1 : rest / part;

    return tokens / chunk * (chunk / part) + of_rest;
}

size_t $(threads.ranges)(size_t tokens, size_t chunk, size_t part)
{
    const size_t parts = $(model)_parts(tokens, chunk, part);

    return parts < 1 ? 1 : parts < $(names.macro("OPENMP")) ? parts : $(names.macro("OPENMP"));
}

size_t $(threads.range)(size_t tokens, size_t chunk, size_t part, size_t range, size_t ranges)
{
    const size_t parts = $(model)_parts(tokens, chunk, part), first = range * parts / ranges;

    return first == parts ? tokens : first * part;
}
#endif

//$ end
/* Whether one of the ids is none. */
static int $(model)_has_wrong(const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        if (ids[i] < 0 || ids[i] >= $(names.macro("VOCAB")))
            return 1;
    return 0;
}

//$ local parameters = "const int32_t *ids, const size_t *offsets, size_t sequences, float *y"
//$ if plan.causal then
//$ parameters = "unsigned char *state, const int32_t *ids, size_t first, size_t tokens, float *y, int all"
//$ end
//$ local arguments = plan.causal and "state, ids, first, tokens, y, all" or "ids, offsets, sequences, y"
static void $(model)_forward(const $(names.weights) *weights, $(parameters), void *scratch)
{
//$ local function call(v) return v.names.forward .. "(weights, " .. arguments .. ", scratch)" end
$(include("templates/bundle/by_isa.c", { call = call }))
}

//$ if plan.causal then
void $(names.start)(void *state)
{
    *(uint32_t *) state = 0;
}

size_t $(names.position)(const void *state)
{
    return *(const uint32_t *) state;
}

/* Appends n ids; y are the logits of all of them or of the last one, or null. */
static int $(model)_append(const $(names.weights) *weights, void *state, const int32_t *ids, size_t n, float *y, int all, void *scratch)
{
    const size_t first = $(names.position)(state);

    if (n > $(context) || first > $(context) - n)
        return $(names.macro("ERROR_POSITION"));
    if ($(model)_has_wrong(ids, n))
        return $(names.macro("ERROR_ID"));
    $(model)_forward(weights, (unsigned char *) state, ids, first, n, y, all, scratch);
    *(uint32_t *) state = (uint32_t) (first + n);
    return $(names.macro("OK"));
}

int $(names.prefill)(const $(names.weights) *weights, void *state, const int32_t *ids, size_t n, float *logits, void *scratch)
{
    return $(model)_append(weights, state, ids, n, logits, 0, scratch);
}

int $(names.prefill_all)(const $(names.weights) *weights, void *state, const int32_t *ids, size_t n, float *logits, void *scratch)
{
    return $(model)_append(weights, state, ids, n, logits, 1, scratch);
}

int $(names.step)(const $(names.weights) *weights, void *state, int32_t id, float *logits, void *scratch)
{
    return $(model)_append(weights, state, &id, 1, logits, 0, scratch);
}
//$ else
int $(names.encode)(const $(names.weights) *weights, const int32_t *ids, size_t n, float *y, void *scratch)
{
    size_t offsets[2];

    offsets[0] = 0;
    offsets[1] = n;
    return $(names.encode_batch)(weights, ids, offsets, 1, y, scratch);
}

int $(names.encode_batch)(const $(names.weights) *weights, const int32_t *ids, const size_t *offsets, size_t sequences,
    float *y, void *scratch)
{
    for (size_t s = 0; s < sequences; ++s)
//$ local none = plan.output.pool and " || offsets[s + 1] == offsets[s]" or ""
        if (offsets[s + 1] < offsets[s] || offsets[s + 1] - offsets[s] > $(context)$(none))
            return $(names.macro("ERROR_POSITION"));
    if ($(model)_has_wrong(ids + offsets[0], offsets[sequences] - offsets[0]))
        return $(names.macro("ERROR_ID"));
    $(model)_forward(weights, ids, offsets, sequences, y, scratch);
    return $(names.macro("OK"));
}
//$ end
//$ if facts then

$(include("templates/tokenizer/tokenizer.c"))
//$ end
