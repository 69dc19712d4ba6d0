//$ takes isa, lanes, helper, embedding, load_weights, load_some_weights, rounded, element, float, groups, load_scale
//$ local type, panel, scaled = embedding.type, embedding.panel, embedding.type.scaled
//$ if embedding.strided and groups then

/* Weight number `i` of output number `output` of the panel at w. */
static inline float $(helper)_element(const $(type.storage) *w, size_t output, size_t i)
{
    const $(type.storage) *group = w + i / $(groups.inputs) * $(groups.words);
    const uint16_t *scales = (const uint16_t *) (const void *) group;
    const uint32_t words = group[$(groups.first_word) + i % $(groups.inputs) / $(groups.of_word) * $(panel) + output];
//$ local shift = groups.bits == 8 and "i % 4 * 8" or "(i % 4 * 8 + i % " .. groups.of_word .. " / 4 * 4)"
    const uint32_t units = words >> $(shift) & $((1 << groups.bits) - 1);
//$ if groups.minimum then
    return $(load_scale("scales", "output")) * (float) units + $(load_scale("scales", panel .. " + output"));
//$ else
    return $(load_scale("scales", "output")) * (float) ((int) units - $(groups.offset));
//$ end
}
//$ end

/* The rows of the embedding for `tokens`
   ids$(embedding.positions and " from position `position` on, with their positions" or ""),
   x[tokens][$(embedding.width)]. */
static void $(helper)_embed(const $(names.weights) *weights, const int32_t *ids,
    $(embedding.positions and "size_t position, " or "")size_t tokens, float *x)
{
//$ local copies = not (embedding.positions or embedding.token_type) -- nothing is added
//$ if not scaled and (copies or embedding.scale ~= 1) then
    const float factor = $hidden($(float(embedding.scale))); /* else its loop is a call of memcpy */ //$ if copies
    const float factor = $(float(embedding.scale)); //$ if not copies

//$ end
//$ local times_factor = scaled or copies or embedding.scale ~= 1
//$ local function scaled_by(value) return times_factor and isa.mul(value, isa.broadcast("factor")) or value end
    for (size_t token = 0; token < tokens; ++token, x += $(embedding.width)) {
        const size_t id = (size_t) ids[token];
//$ if scaled then
        const float factor = $(embedding.scale ~= 1 and float(embedding.scale) .. " * " or "")weights->embedding_scales[id];
//$ end
//$ if embedding.positions then
        const float *place = weights->positions + $(times("(position + token)", embedding.width));
//$ end
//$ local added = {}
//$ if embedding.positions then added[#added + 1] = "place" end
//$ if embedding.token_type then added[#added + 1] = "weights->token_type" end
//$ if embedding.strided then
        /* a column of a panel: $(embedding.table and "the head reads " or "")$(plural(panel, "row"))$(embedding.table and "" or " lie") side by side */
//$ local at = "i * " .. panel
//$ if groups then
        const $(type.storage) *row = weights->embedding + id / $(panel) * $((embedding.width + groups.inputs - 1) // groups.inputs * groups.words);
//$ elseif rounded then
//$     at = "i / " .. rounded.rows .. " * " .. panel * rounded.rows .. " + i % " .. rounded.rows
//$ local storage = rounded.integers and "uint8_t" or type.storage
        const $(storage) *row = (const $(storage) *) (weights->embedding + id / $(panel) * $(embedding.table.panel_step) + id % $(panel));
//$ else
        const $(type.storage) *row = weights->embedding + id / $(panel) * $(embedding.width * panel) + id % $(panel);
//$ end

        for (size_t i = 0; i < $(embedding.width); ++i)
//$ local text = (times_factor and "factor * " or "") .. (groups and helper .. "_element(row, id % " .. panel .. ", i)" or element("row", at))
//$ for _, base in ipairs(added) do text = text .. " + " .. base .. "[i]" end
            x[i] = $(text);
//$ else
        const $(type.storage) *row = weights->embedding + $(times("id", embedding.width));
//$ local whole_vectors, rest = embedding.width // lanes * lanes, embedding.width % lanes
//$ local function sum_of(value, load)
//$     for _, base in ipairs(added) do value = isa.add(value, load(base)) end
//$     return value
//$ end
//$ loop("i", 0, whole_vectors, lanes, function(at)
            const $(isa.vector) values = $(scaled_by(load_weights("row", at)));
            $(isa.store_unaligned("x", at, sum_of("values", function(base) return isa.load_unaligned(base, at) end)));
//$ end, { block = rest > 0 })
//$ if rest > 0 then
        const $(isa.vector) values = $(scaled_by(load_some_weights("row", whole_vectors, rest)));
//$ local function load_rest(base) return isa.load_partial(base, whole_vectors, rest) end
        $(isa.store_partial("x", whole_vectors, rest, sum_of("values", load_rest)));
//$ end
//$ end
    }
}
