//$ takes helper, embed, float
//$ local e = embed
//$ local added = {}
//$ if e.positions then added[#added + 1] = "t->parameters[" .. sum(e.positions, times("position", e.width), "i") .. "]" end
//$ if e.sinusoids then added[#added + 1] = "t->constants[" .. sum(e.sinusoids, times("position", e.width), "i") .. "]" end
//$ if e.token_type then added[#added + 1] = "t->parameters[" .. sum(e.token_type, "i") .. "]" end

/* The rows of the embedding for the part's own tokens. */
static void $(helper)_embed(const $(helper)_run *r, float *restrict y)
{
    const $(helper) *t = r->t;
    const float factor = $hidden($(float(e.scale)));

    for (size_t token = r->first; token < r->first + r->count; ++token, y += $(e.pitch)) {
        const float *row = $(sum("t->parameters", e.word, times("(size_t) r->ids[token]", e.width)));
//$ if e.positions or e.sinusoids then
        const size_t position = token % r->length;
//$ end

        for (size_t i = 0; i < $(e.width); ++i)
            y[i] = $(sum("factor * row[i]", added[1] or 0, added[2] or 0));
    }
}

/* Adds to the gradients of the embeddings, columns `column` … `end` - 1, from those of all rows. */
static void $(helper)_embed_back(const $(helper)_run *r, const float *restrict d, size_t column, size_t end)
{
    float *gradients = r->t->gradients;
    const float factor = $(float(e.scale));

    for (size_t token = 0; token < r->sequences * r->length; ++token, d += $(e.pitch)) {
        float *row = $(sum("gradients", e.word, times("(size_t) r->ids[token]", e.width)));
//$ if e.positions then
        float *place = $(sum("gradients", e.positions, times("token % r->length", e.width)));
//$ end

        for (size_t i = column; i < end; ++i)
            row[i] += factor * d[i];
//$ if e.positions then
        for (size_t i = column; i < end; ++i)
            place[i] += d[i];
//$ end
//$ if e.token_type then
        for (size_t i = column; i < end; ++i)
            gradients[$(sum(e.token_type, "i"))] += d[i];
//$ end
    }
}
