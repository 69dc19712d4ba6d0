//$ takes helper, cache_type
//$ -- How keys go into a cache that has no values: all heads of a token in a row, before they are rotated.
//$ local pitch, width, plain = names.constant("VALUE_PITCH"), shape.width, cache_type.plain
//$ -- What is rounded together, a row or, to integers, a head of it: so many elements, filled up.
//$ local part, elements = cache_type.scaled and width or shape.e, shape.cache.rounded_elements
//$ local copies = part < elements
//$ local length = shape.mixed and "positions" or names.constant("CACHE_POSITIONS")
//$ if not plain then
$(include("templates/model/blocks/round_head.c", { elements = elements, text = cache_type.scaled and tostring(elements) or pitch }))
//$ end

/* Puts the keys of the tokens of `span` into the cache of a layer. */
static void $(helper)_append(const $(names.type("layer")) *layer, const $(names.type("buffers")) *b, const $(names.span) *span,
    const $(names.type("cache")) *cache)
{
$(include("templates/model/blocks/rows_of_span.c", { rows = { "k" }, reads = 1 }))
    const size_t first = span->first, tokens = span->count;
$(include("templates/model/blocks/cache_of_span.c"))
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */ //$ if plain or copies
    const float zero = $hidden(0.0f); /* else its loop is a call of memset */ //$ if copies

    (void) layer; /* nothing is rotated before it is read */
    for (size_t token = 0; token < tokens; ++token) {
        const float *token_k = k + token * k_step;
        const size_t place = $(shape.ring and "(first + token) % " .. length or "first + token");
        $(cache_type.storage) *row = keys + place * $(pitch);
//$ local function head_of(name) return cache_type.scaled and sum(name, times("head", width)) or name end
        for (size_t head = 0; head < $(shape.heads); ++head) { //$ if cache_type.scaled
//$ if plain then
            for (size_t i = 0; i < $(shape.e); ++i)
                row[i] = one * token_k[i];
//$ if copies then
            for (size_t i = $(shape.e); i < $(pitch); ++i)
                row[i] = zero;
//$ end
//$ elseif copies then
            float all[$(elements)];
            $(cache_type.storage) rounded[$(elements)]; //$ if cache_type.scaled
            for (size_t i = 0; i < $(part); ++i)
                all[i] = one * token_k[$(head_of("i"))];
            for (size_t i = $(part); i < $(elements); ++i)
                all[i] = zero;
//$ if cache_type.scaled then
            key_scales[place * $(shape.heads) + head] = $(helper)_round_head(all, rounded);
            for (size_t i = 0; i < $(part); ++i)
                row[$(head_of("i"))] = rounded[i];
//$ else
            $(helper)_round_head(all, row);
//$ end
//$ elseif cache_type.scaled then
            key_scales[place * $(shape.heads) + head] = $(helper)_round_head($(head_of("token_k")), $(head_of("row")));
//$ else
            $(helper)_round_head(token_k, row);
//$ end
        } //$ if cache_type.scaled
    }
}
