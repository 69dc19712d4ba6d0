//$ takes helper, v, structs, turn
//$ -- Attention by tables of some tokens.
//$ local hash, causal, group = shape.lsh, shape.causal, shape.group
//$ local all = { { name = "q", heads = shape.heads }, causal and { name = "k", heads = shape.kv_heads } or nil }

//$ local rotates = shape.rope and " Rotates q" .. (causal and " and k" or "") .. " in place." or ""
/* Attention of the tokens of `span`: q and y are rows of $(plural(shape.heads, "head")) of $(shape.width).$(rotates) */
static void $(helper)_attend(const $(names.type("layer")) *layer, const $(names.type("attention")) *a, const $(names.span) *span,
    const $(names.type("cache")) *cache)
{
    const size_t tokens = span->count, q_step = a->q.step, y_step = a->y.step;
    float *q = a->q.at + span->token * q_step, *y = a->y.at + span->token * y_step;
//$ if causal then
    const size_t k_step = a->k.step, v_step = a->v.step;
    float *k = a->k.at + span->token * k_step, *v = a->v.at + span->token * v_step;
//$ end
$(include("templates/model/blocks/cache_of_span.c"))
    $(names.type("cache")) head_cache;
    $(names.type("attention")) part;
//$ if shape.rope then
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t token = 0; token < tokens; ++token) {
$(include("templates/model/blocks/angles.c", { position = "(span->first + token)" }))
//$ for _, row in ipairs(all) do
//$ local name, heads = row.name, row.heads
//$ local own = name .. " + token * " .. name .. "_step + head * " .. shape.width
        for (size_t head = 0; head < $(heads); ++head)
            $(turn)_rotate_$(shape.width)($(own), cosine, sine, one, $(own));
//$ end
    }
//$ end
//$ if causal and shape.shifted > 0 then
    /* the first $(shape.shifted > 1 and shape.shifted .. " heads" or "head") of k: those of the token before */
    for (size_t token = 0; token < tokens; ++token)
        for (size_t i = 0; i < $(shape.shifted * shape.width); ++i) {
            const float own = k[token * k_step + i];

            k[token * k_step + i] = span->first + token > 0 ? before[i] : own;
            before[i] = own;
        }
//$ end
//$ for _, row in ipairs(all) do
//$ local name, heads = row.name, row.heads
    $(helper)_hash_heads(layer->signs, $(name), $(name)_step, $(heads), tokens, a->$(name)_codes, a->z);
//$ end
    part.q.step = q_step;
//$ if causal then
    part.k.step = k_step;
    part.v.step = v_step;
//$ else
    part.table = a->table;
//$ end
    part.y.step = y_step;
//$ loop("head", 0, shape.kv_heads, 1, function(head)
//$ local of_q, of_k = times(head, group * shape.width), times(head, shape.width)
//$ local function codes_of(heads) return head ~= 0 and "head * " .. heads * hash.tables .. " * tokens" or 0 end
//$ for _, part in ipairs(structs.cache) do
        head_cache.$(part.name) = $(sum(part.name, times(head, names.constant(part.name:upper() .. "_HEAD"))));
//$ end
        part.q.at = $(sum("q", of_q));
        part.q_codes = $(sum("a->q_codes", codes_of(group)));
//$ if causal then
        part.k.at = $(sum("k", of_k));
        part.v.at = $(sum("v", of_k));
        part.k_codes = $(sum("a->k_codes", codes_of(1)));
//$ end
        part.y.at = $(sum("y", of_q));
        $(v.names.attention)(&head_cache, span, &part);
//$ end)
}
