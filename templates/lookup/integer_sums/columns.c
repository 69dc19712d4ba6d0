//$ takes gather, isa, tile, tables, t, prefix, pack, row_pitch, pitch_parameter, prefetch_next, run_name, slots_text,
//$ takes lane_axis, columns_type, constant, helper
//$ -- Functions that add rows to a tile of columns of every token: sums wait as integers, in the order in which the interleaved rows leave
//$ -- them; with the last tables' rows they become y.
//$ local parts, token_words = gather.integers.parts, gather.integers.quads * gather.integers.parts
//$ local words_axis = parts == 2 and "[2]" or ""
//$ local next_parameter = prefetch_next and ", const " .. tables.storage .. " *next_table" or ""
//$ local adds_to_y = #gather.integers.spans > 1
//$ for _, run in ipairs(gather.integers.runs) do

/* Adds $(shape.neighbours == 1 and "one row" or shape.neighbours .. " rows") of
   $(run.tables == 1 and "a table" or "each of " .. run.tables .. " tables") to $(plural(t.width, "column")) of every
   token: $(run.last and "y = base + unit * (from + sum of score times row)" or "to = from + sum of score times row").
   table    [$(run.tables)][$(shape.rows)][$(row_pitch)], from the first of the columns on
   code     [tiles]$(slots_text)$(lane_axis), from the first of the tables on
   words    [tiles][$(gather.integers.quads)]$(words_axis)$(lane_axis), likewise: scores as integers
//$ local places = "where `from` and `to` are, [tokens][" .. t.pitch .. "]"
//$ if run.last then places = "where `from`, base and y of `tokens` tokens are" end
   columns  $(places)$(prefetch_next and "" or " */")
//$ if prefetch_next then
   next_table  [$(gather.group)][$(shape.rows)][$(row_pitch)], the columns that are read after these: tokens prefetch their rows in turn */
//$ end
$(pack and names.macro("INLINE") or "static") void $(run_name(run, t))$(pack and "_at_pitch" or "")(const $(tables.storage) *table,
    $(pitch_parameter)const uint16_t *code, const uint32_t *words, const $(columns_type) *columns,
    size_t tokens$(next_parameter))
{
    const int32_t *from = columns->from;
    const size_t from_step = columns->from_step;
//$ if run.last then
    const float *units = columns->units;
    const float *base = columns->base;
    const size_t base_step = columns->base_step; //$ if adds_to_y
    float *y = columns->y;
    const int streams = columns->streams; //$ if gather.stream
//$ else
    int32_t *to = columns->to;
//$ end

    for (size_t first = 0; first < tokens; first += $(tile)) {
        const size_t end = tokens - first < $(tile) ? tokens - first : $(tile);
//$ if gather.prefetch_codes then
        /* while these tokens are summed, codes and scores of the next tile come */
        const size_t ahead = first + $(tile) < tokens ? first + $(tile) : first;
//$ end
//$ if run.last then
        for (size_t token = 0; token < end; ++token) {
            const int32_t *token_from = from + (first + token) * from_step;
            const float *token_base = base + (first + token) * base_step; //$ if adds_to_y
            float *token_y = y + (first + token) * $(shape.y_step);
//$ else
        for (size_t token = 0; token < end; ++token) {
            const int32_t *token_from = from + (first + token) * from_step;
            int32_t *token_to = to + (first + token) * $(t.pitch);
//$ end
            const uint16_t *token_code = code + first * $(shape.slots) + token;
            const uint32_t *token_words = words + first * $(token_words) + token;
//$ if gather.prefetch_codes then
//$     -- Of a tile the codes of these tables are `share` elements a token, and the words 1/2 or 1/4 as many.
//$     local share = run.tables * shape.neighbours
//$     for at = 0, share - 1, 32 do
            $(isa.prefetch_l1(sum("code", times("ahead", shape.slots), times("token", share)), at));
            $(isa.prefetch_l1(sum("words", times("ahead", token_words), times("token", share * parts // 4)), at * parts // 4));
//$     end
//$ end
//$ if gather.prefetch_tokens then
//$ local next_tile = "first + " .. tile .. " < tokens ? code + (first + " .. tile .. ") * " .. shape.slots .. " : token_code"
            const uint16_t *next_code = token + 1 < end ? token_code + 1 : $(next_tile);
//$ end
            const $(isa.vector) unit = $(isa.broadcast("units[first + token]")); //$ if run.last
$(include("templates/lookup/shared/prefetch_rows.c", { t = t })) //$ if prefetch_next
//$ local token = {
//$     count = run.tables * shape.neighbours,
//$     run = run,
//$     from = adds_to_y and "token_base" or "base",
//$     to = run.last and "token_y" or "token_to",
//$     prefix = prefix,
//$ }
//$ local strip = "templates/lookup/integer_sums/strip.c"
$(include("templates/lookup/shared/strips.c", { s = t.strips, strip = strip, token = token }))
        }
    }
}
//$ if pack then

/* The same for tables of the blob, whose rows are copied to `slice` first if the tokens make up for it. */
//$ local next = prefetch_next and ", next_table" or ""
static void $(run_name(run, t))(const $(tables.storage) *table, $(tables.storage) *slice,
    const uint16_t *code, const uint32_t *words, const $(columns_type) *columns, size_t tokens$(next_parameter))
{
    if (tokens < $(gather.packs_from))
        $(run_name(run, t))_at_pitch(table, $(constant("ROW_PITCH")), code, words, columns, tokens$(next));
    else
        $(run_name(run, t))_at_pitch($(helper)_pack_$(t.width)(table, $(run.tables), slice), $(pack.pitch),
            code, words, columns, tokens$(next));
}
//$ end
//$ end
