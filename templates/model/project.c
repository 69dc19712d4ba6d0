//$ takes isa, lanes, helper, float, type, embedding, load_weights, load_some_weights
//$ local projected = embedding.projected
//$ local by_position = projected.parts[1].positions
//$ local normed = projected.norm ~= nil

/* What the first block's maps make of `tokens` ids$(by_position and " from position `position` on" or "")$(normed and ", whose rows a norm multiplies by `factors`" or ""): x[tokens][$(embedding.input)]. */
static void $(helper)_project(const $(names.weights) *weights, const int32_t *ids, $(by_position and "size_t position, " or "")size_t tokens, $(normed and "const float *restrict factors, " or "")float *restrict x)
{
    for (size_t token = 0; token < tokens; ++token, x += $(embedding.input)) {
        const size_t id = (size_t) ids[token];
//$ if isa.prefetch_l1 then
//$ -- The sentence encoder takes 0.97 of the time so (Zen 3, i8).
        /* The next token's rows are on their way from memory meanwhile. */
        const size_t next = (size_t) ids[token + 1 < tokens ? token + 1 : token];
//$ for _, part in ipairs(projected.parts) do
//$ local row = "(uintptr_t) (weights->words_" .. part.name .. " + next * " .. part.width .. ")"
//$ loop("        ", "byte", 0, part.width * type.bytes, 64, function(i, at)
$(i)$(isa.prefetch_l1(row, at));
//$ end)
//$ if type.scaled then
        $(isa.prefetch_l1("(uintptr_t) (weights->words_" .. part.name .. "_scales + next)", 0));
//$ end
//$ end
//$ end
//$ if normed then
        const $(isa.vector) factor = $(isa.broadcast("factors[token]"));
//$ end
//$ for _, part in ipairs(projected.parts) do
//$ local name, whole, rest = part.name, part.width // lanes * lanes, part.width % lanes
//$ local unit, words, places = name .. "_unit", name .. "_words", name .. "_places"
        const $(type.storage) *$(words) = weights->words_$(name) + id * $(part.width);
//$ if part.positions then
        const float *$(places) = weights->positions_$(name) + (position + token) * $(part.width);
//$ end
//$ if type.scaled or embedding.scale ~= 1 then
        const $(isa.vector) $(unit) = $(isa.broadcast((embedding.scale ~= 1 and float(embedding.scale) or "") .. (embedding.scale ~= 1 and type.scaled and " * " or "") .. (type.scaled and "weights->words_" .. name .. "_scales[id]" or "")));
//$ end
//$ local function value(row, load, at)
//$     local scaled = type.scaled or embedding.scale ~= 1
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
//$ loop("        ", "i", 0, whole, lanes, function(i, at)
$(i)const $(isa.vector) row = $(load_weights(words, at));
$(i)$(isa.store_unaligned("x", sum(at, part.at), value("row", isa.load_unaligned, at)));
//$ end, { block = true })
//$ if rest > 0 then
        const $(isa.vector) $(name)_rest = $(load_some_weights(words, whole, rest));
        $(isa.store_partial("x", part.at + whole, rest, value(name .. "_rest", function(base, at) return isa.load_partial(base, at, rest) end, whole)));
//$ end
//$ end
    }
}
