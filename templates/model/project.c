//$ takes isa, lanes, helper, float, rows_type, embedding, load_weights, load_some_weights, mapped_row
//$ local projected, scale = embedding.projected, embedding.scale ~= 1 and float(embedding.scale) or 1
//$ local by_position, normed = projected.parts[1].positions, projected.norm ~= nil

//$ local from = by_position and " from position `position` on" or ""
//$ local norm = normed and ". A norm multiplies the rows of ids by `factors`" or ""
/* What the first block's maps make of `tokens` ids$(from): x[tokens][$(embedding.input)]$(norm). */
static void $(helper)_project(const $(names.weights) *weights, const int32_t *ids,$(by_position and " size_t position," or "")
    size_t tokens,$(normed and " const float *restrict factors," or "") float *restrict x)
{
    for (size_t token = 0; token < tokens; ++token, x += $(embedding.input)) {
        const size_t id = (size_t) ids[token];
//$ if isa.prefetch_l1 then
//$ -- The sentence encoder takes 0.97 of the time so (Zen 3, i8).
        /* The next token's rows are on their way from memory meanwhile. */
        const size_t next = (size_t) ids[token + 1 < tokens ? token + 1 : token];
//$ for _, part in ipairs(projected.parts) do
//$ local row = "(uintptr_t) (weights->words_" .. part.name .. " + next * " .. part.width .. ")"
//$ loop("byte", 0, part.width * rows_type.bytes, 64, function(at)
            $(isa.prefetch_l1(row, at));
//$ end)
        $(isa.prefetch_l1("(uintptr_t) (weights->words_" .. part.name .. "_scales + next)", 0)); //$ if rows_type.scaled
//$ end
//$ end
        const $(isa.vector) factor = $(isa.broadcast("factors[token]")); //$ if normed
//$ for _, part in ipairs(projected.parts) do
//$ local name, words, rest = part.name, part.name .. "_words", part.width % lanes
//$ local unit = times(scale, rows_type.scaled and "weights->words_" .. name .. "_scales[id]" or 1)
//$ local whole = part.width - rest
        const $(rows_type.storage) *$(words) = weights->words_$(name) + id * $(part.width);
        const float *$(name)_places = weights->positions_$(name) + (position + token) * $(part.width); //$ if part.positions
        const $(isa.vector) $(name)_unit = $(isa.broadcast(unit)); //$ if unit ~= 1
//$ loop("i", 0, whole, lanes, function(at)
            const $(isa.vector) row = $(load_weights(words, at));
            $(isa.store_unaligned("x", sum(at, part.at), mapped_row(part, "row", at)));
//$ end, { block = true })
//$ if rest > 0 then
        const $(isa.vector) $(name)_rest = $(load_some_weights(words, whole, rest));
        $(isa.store_partial("x", part.at + whole, rest, mapped_row(part, name .. "_rest", whole, rest)));
//$ end
//$ end
    }
}
