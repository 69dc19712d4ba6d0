//$ takes helper, v, structs, turn
//$ -- Attention by tables of some tokens.
//$ local hash, causal, group = shape.lsh, shape.causal, shape.group
//$ local all = { { name = "q", heads = shape.heads }, causal and { name = "k", heads = shape.kv_heads } or nil }
//$ local shifts = causal and shape.shifted > 0
//$ if shifts then

/* Gives the first $(shape.shifted > 1 and shape.shifted .. " heads" or "head") of k of each token those of the token before, which is in `before` for the first
   token here; the first token of a sequence keeps its own. Leaves those of the last token in `before`. */
static void $(helper)_shift_keys(float *k, size_t k_step, size_t first, size_t tokens, float *before)
{
    for (size_t token = 0; token < tokens; ++token)
        for (size_t i = 0; i < $(shape.shifted * shape.width); ++i) {
            const float own = k[token * k_step + i];

            k[token * k_step + i] = first + token > 0 ? before[i] : own;
            before[i] = own;
        }
}
//$ end

//$ local rotates = shape.rope and " Rotates q" .. (causal and " and k" or "") .. " in place." or ""
//$ if shifts then rotates = rotates .. " Shifts keys." end
/* Attention of the tokens of `span`: q and y are rows of $(plural(shape.heads, "head")) of $(shape.width).$(rotates) */
static void $(helper)_attend(const $(names.type("call")) *call, const $(names.type("layer")) *layer, const $(names.type("buffers")) *b,
    const $(names.span) *span, const $(names.type("cache")) *cache)
{
$(include("templates/model/blocks/rows_of_span.c", { rows = causal and { "q", "k", "v", "y" } or { "q", "y" }, reads = 0 }))
    const size_t tokens = span->count;
$(include("templates/model/blocks/cache_of_span.c"))
    $(names.type("attention")) a;
    $(names.type("cache")) head_cache;
//$ if shape.rope then
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t token = 0; token < tokens; ++token) {
$(include("templates/model/blocks/angles.c", { of = "layer", position = "(span->first + token)" }))
//$ for _, row in ipairs(all) do
//$ local name, heads = row.name, row.heads
//$ local own = name .. " + token * " .. name .. "_step + head * " .. shape.width
        for (size_t head = 0; head < $(heads); ++head)
            $(turn)_rotate_$(shape.width)($(own), cosine, sine, one, $(own));
//$ end
    }
//$ end
    $(helper)_shift_keys(k, k_step, span->first, tokens, before); //$ if shifts
//$ for _, row in ipairs(all) do
//$ local name, heads = row.name, row.heads
    $(helper)_hash_heads(layer->signs, $(name), $(name)_step, $(heads), tokens, b->$(name)_codes, b->z);
//$ end
    $(helper)_attention_at(call, layer, b, &a);
//$ loop("head", 0, shape.kv_heads, 1, function(head)
//$ local of_q, of_k = times(head, group * shape.width), times(head, shape.width)
//$ local function codes_of(heads) return head ~= 0 and "head * " .. heads * hash.tables .. " * tokens" or 0 end
        head_cache.$(part.name) = $(sum(part.name, times(head, names.constant(part.name:upper() .. "_HEAD")))); //$ for _, part in ipairs(structs.cache) if part.name ~= "before"
        a.q.at = $(sum("q", of_q));
        a.q_codes = $(sum("b->q_codes", codes_of(group)));
//$ if causal then
        a.k.at = $(sum("k", of_k));
        a.v.at = $(sum("v", of_k));
        a.k_codes = $(sum("b->k_codes", codes_of(1)));
//$ end
        a.y.at = $(sum("y", of_q));
        $(v.names.attention)(&head_cache, span, &a);
//$ end)
}
