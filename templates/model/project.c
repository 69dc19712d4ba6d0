//$ takes isa, lanes, helper, float, rows_type, embedding, load_weights, load_some_weights
//$ local projected = embedding.projected
//$ local by_position = projected.parts[1].positions
//$ local normed = projected.norm ~= nil

//$ local parameters = listed(
//$     "const " .. names.weights .. " *weights, const int32_t *ids",
//$     by_position and "size_t position",
//$     "size_t tokens",
//$     normed and "const float *restrict factors",
//$     "float *restrict x"
//$ )
//$ local from = by_position and " from position `position` on" or ""
//$ local norm = normed and ". A norm multiplies the rows of ids by `factors`" or ""
/* What the first block's maps make of `tokens` ids$(from): x[tokens][$(embedding.input)]$(norm). */
static void $(helper)_project($(parameters))
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
//$ local name, rest = part.name, part.width % lanes
//$ local whole = part.width - rest
//$ local unit, words, places = name .. "_unit", name .. "_words", name .. "_places"
        const $(rows_type.storage) *$(words) = weights->words_$(name) + id * $(part.width);
        const float *$(places) = weights->positions_$(name) + (position + token) * $(part.width); //$ if part.positions
//$ if rows_type.scaled or embedding.scale ~= 1 then
//$ local scale = embedding.scale ~= 1 and float(embedding.scale)
//$ local of_row = rows_type.scaled and "weights->words_" .. name .. "_scales[id]"
        const $(isa.vector) $(unit) = $(isa.broadcast(scale and of_row and scale .. " * " .. of_row or scale or of_row));
//$ end
//$ local function value(row, load, at)
//$     local scaled = rows_type.scaled or embedding.scale ~= 1
//$     local made = row
//$     if scaled and part.positions then
//$         made = isa.fma(row, unit, load(places, at))
//$     elseif scaled then
//$         made = isa.mul(row, unit)
//$     elseif part.positions then
//$         made = isa.add(row, load(places, at))
//$     end
//$     local bias = load("weights->bias_" .. name, at)
//$     return part.normed and isa.fma(made, "factor", bias) or isa.add(made, bias)
//$ end
//$ loop("i", 0, whole, lanes, function(at)
            const $(isa.vector) row = $(load_weights(words, at));
            $(isa.store_unaligned("x", sum(at, part.at), value("row", isa.load_unaligned, at)));
//$ end, { block = true })
//$ if rest > 0 then
        const $(isa.vector) $(name)_rest = $(load_some_weights(words, whole, rest));
//$ local function load_rest(base, at) return isa.load_partial(base, at, rest) end
        $(isa.store_partial("x", part.at + whole, rest, value(name .. "_rest", load_rest, whole)));
//$ end
//$ end
    }
}
