//$ takes helper, embed, place, float
//$ local e = embed
//$ -- A row of a table of the embedding, `index` rows behind its first one.
//$ local function row_of(base, table, index) return sum(base, place("tensor", table), times(index, e.width)) end
//$ local added = {}
//$ local of_position = times("position", e.width)
//$ if e.positions then added[1] = "t->parameters[" .. sum(place("tensor", e.positions), of_position, "i") .. "]" end
//$ if e.sinusoids then added[#added + 1] = "t->constants[" .. sum(e.sinusoids, of_position, "i") .. "]" end
//$ if e.token_type then added[#added + 1] = "t->parameters[" .. sum(place("tensor", e.token_type), "i") .. "]" end

/* The embeddings of the part's own tokens. */
static void $(helper)_embed(const $(helper)_run *r, const $(names.rows) *to)
{
    const $(helper) *t = r->t;
    float *y = to->at;
    const float factor = $hidden($(float(e.scale))); /* else its loop is a call of memcpy */ //$ if #added == 0
    const float factor = $(float(e.scale)); //$ if #added > 0 and e.scale ~= 1

    for (size_t token = r->first; token < r->first + r->count; ++token, y += to->step) {
        const float *row = $(row_of("t->parameters", e.word, "(size_t) r->ids[token]"));
        const size_t position = token % r->length; //$ if e.positions or e.sinusoids

        for (size_t i = 0; i < $(e.width); ++i)
            y[i] = $(sum((#added == 0 or e.scale ~= 1) and "factor * row[i]" or "row[i]", added[1] or 0, added[2] or 0));
    }
}

/* Adds the gradients of the embeddings of all tokens to those of the tables; each part has columns of its own. */
static void $(helper)_embed_back(const $(helper)_run *r, const $(names.rows) *from)
{
    const size_t column = $(helper)_part_begins(r->t, $(e.width), r->t->part);
    const size_t end = $(helper)_part_begins(r->t, $(e.width), r->t->part + 1);
    float *gradients = r->t->gradients;
    const float *d = from->at;

    for (size_t token = 0; token < r->sequences * r->length; ++token, d += from->step) {
        float *row = $(row_of("gradients", e.word, "(size_t) r->ids[token]"));
        float *place = $(row_of("gradients", e.positions, "token % r->length")); //$ if e.positions

        for (size_t i = column; i < end; ++i)
            row[i] += $(e.scale == 1 and "" or float(e.scale) .. " * ")d[i];
//$ if e.positions then
        for (size_t i = column; i < end; ++i)
            place[i] += d[i];
//$ end
//$ if e.token_type then
        for (size_t i = column; i < end; ++i)
            gradients[$(sum(place("tensor", e.token_type), "i"))] += d[i];
//$ end
    }
}
