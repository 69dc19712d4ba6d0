//$ takes in_scratch, constant, of_tile, table_at, next_at, prologue, helper, symbol, gather, isa, tile, tables, loads, pack, place,
//$ takes prefetch_next, row_pitch, count, waits_text
//$ takes weighted, product_text, sum_text, sums_of_integers, slots_text, lane_axis, y_rows
//$ lines(prologue)
//$ for _, load in ipairs(loads) do load.name = once("templates/lookup/shared/load.c", { load = load }) .. load.ending end
//$ local columns_type = once("templates/lookup/shared/columns.h") .. "_columns"
//$ local store_y = gather.stream and once("templates/lookup/shared/store_y.c") .. "_store_y" or false
//$ local next_parameter = prefetch_next and ", const " .. tables.storage .. " *next_table" or ""
//$ local prefix = {} -- of the names of functions for sums of integers
//$ if gather.integers then
//$     prefix.scores = once("templates/lookup/integer_sums/scores.c")
//$     prefix.line = once("templates/lookup/integer_sums/line.c")
//$     local sums_type = prefix.line .. "_sums"
//$     prefix.keep = once("templates/lookup/integer_sums/keep_sums.c", { sums_type = sums_type })
//$     prefix.finish = once("templates/lookup/integer_sums/finish_y.c", { sums_type = sums_type, store_y = store_y })
$(include("templates/lookup/integer_sums/sums.c", { prefix = prefix }))
//$ end
//$ for _, t in ipairs(gather.tiles) do
$(include("templates/lookup/shared/pack.c", { t = t })) //$ if pack
//$     if sums_of_integers then
$(include("templates/lookup/integer_sums/columns.c", { t = t, prefix = prefix, columns_type = columns_type }))
//$     else

/* Adds $(shape.neighbours == 1 and "one row" or shape.neighbours .. " rows") of each of `tables` tables to
   $(plural(t.width, "column")) of every token: y = from + sum of $(product_text).
   table    [tables][$(shape.rows)][$(row_pitch)], from the first of the columns on
   code     [$(tile == 1 and "tokens" or "tiles")]$(slots_text)$(lane_axis), from the first of the
            tables on$(weighted and "; score likewise" or "")
   columns  where `from` and y of `tokens` tokens are; steps are floats$(prefetch_next and "" or " */")
//$ if prefetch_next then
   next_table  [$(gather.group)][$(shape.rows)][$(row_pitch)], the columns that are read after these: tokens prefetch their rows in turn */
//$ end
static inline void $(helper)_columns_$(t.width)$(pack and "_at_pitch" or "")(const $(tables.storage) *table,
    $(pack and "size_t row_step, " or "")size_t tables,
    const uint16_t *code$(weighted and ", const float *score" or ""),
    const $(columns_type) *columns, size_t tokens$(next_parameter))
{
    const float *from = columns->from;
    const size_t from_step = columns->from_step;
    float *y = columns->y;
    const size_t y_step = columns->y_step; //$ if gather.scratch.sums
    const int streams = columns->streams; //$ if gather.stream
//$ local y_step = gather.scratch.sums and "y_step" or shape.y_step

//$ if tile == 1 then
    for (size_t token = 0; token < tokens; ++token) {
        const uint16_t *token_code = code + token * $(shape.slots);
//$     if gather.prefetch_tokens then
        const uint16_t *next_code = token + 1 < tokens ? token_code + $(shape.slots) : token_code;
//$     end
//$     if gather.integers then
        uint32_t token_words[$(gather.integers.parts * gather.integers.low_at)];
//$         local arguments = "(score + token * " .. shape.slots .. ", " .. count .. ", token_words)"
        const $(isa.vector) unit = $(isa.broadcast(prefix.scores .. "_scores_to_integers" .. arguments));
//$     elseif weighted then
        const float *token_score = score + token * $(shape.slots);
//$     end
        const float *y_from = from + token * from_step;
        float *y_to = y + token * $(y_step);
//$ else
    for (size_t first = 0; first < tokens; first += $(tile)) {
        const size_t end = tokens - first < $(tile) ? tokens - first : $(tile);
        for (size_t token = 0; token < end; ++token) {
            const uint16_t *token_code = code + first * $(shape.slots) + token;
            const float *token_score = score + first * $(shape.slots) + token; //$ if weighted
//$     if gather.prefetch_tokens then
//$ local next_tile = "first + " .. tile .. " < tokens ? code + (first + " .. tile .. ") * " .. shape.slots .. " : token_code"
            const uint16_t *next_code = token + 1 < end ? token_code + 1 : $(next_tile);
//$     end
            const float *y_from = from + (first + token) * from_step;
            float *y_to = y + (first + token) * $(y_step);
//$ end
$(include("templates/lookup/shared/prefetch_rows.c", { t = t })) //$ if prefetch_next
//$ local strip = gather.integers and "templates/lookup/integer_sums/strip.c" or "templates/lookup/shared/gather_strip.c"
//$ local token = { count = count, from = "y_from", to = "y_to", prefix = prefix, store_y = store_y }
$(include("templates/lookup/shared/strips.c", { s = t.strips, strip = strip, token = token }))
        } //$ if tile > 1
    }
}
//$         if pack then
//$ local others = weighted and ", score" or ""
//$ local next = prefetch_next and ", next_table" or ""

/* The same for tables of the blob, whose rows are copied to `slice` first if the tokens make up for it. */
static void $(helper)_columns_$(t.width)(const $(tables.storage) *table, $(tables.storage) *slice, size_t tables,
    const uint16_t *code$(weighted and ", const float *score" or ""),
    const $(columns_type) *columns, size_t tokens$(next_parameter))
{
    if (tokens < $(gather.packs_from))
        $(helper)_columns_$(t.width)_at_pitch(table, $(constant("ROW_PITCH")), tables, code$(others), columns, tokens$(next));
    else
        $(helper)_columns_$(t.width)_at_pitch($(helper)_pack_$(t.width)(table, tables, slice), $(pack.pitch),
            tables, code$(others), columns, tokens$(next));
}
//$         end
//$     end
//$ end

/* Gather: y = bias + sum $(sum_text) (LookupFFN, section "Put it together").
   Rows are in units of their scale, which the score has as a factor. //$ if tables.scaled
//$ if gather.group < shape.h then
//$     local side_by_side = tile == 1 or gather.name == "whole"
//$     local why = side_by_side and "their rows are read side by side, a strip of each after the other"
//$         or "tokens share the rows that are in cache"
   Tables are taken $(gather.group) at a time, for all tokens: $(why).
//$ end
   weights  bound weights
   code     $(tile == 1 and "[tokens]" or "[tiles of " .. tile .. " tokens]")$(slots_text)$(lane_axis), each below $(shape.rows)
   score    $(weighted and "the same shape" or "not read: rows count alike")
   y        [tokens]$(y_rows), any alignment, must not overlap $(weighted and "code, score or weights" or "code or weights")
//$ local sums = gather.scratch.sums
//$ if waits_text ~= "" then
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, 64-byte aligned, of which code $(weighted and "and score " or "")may be a
            part: $(waits_text) wait there
//$ else
   scratch  not used
//$ end
//$ local parts = gather.names.columns and gather.parts
//$ if parts then
   first    number of the first of $(plural(parts, "tile")) of columns to gather; others are left alone
   end      number of the first tile behind them, at most $(parts)
   Cannot fail. */
void $(gather.names.columns)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens, size_t first, size_t end, void *scratch)
{
//$ else
   Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens, void *scratch)
{
//$ end
    (void) score; //$ if not weighted
//$ local function buffer(type, name)
    $(type) *$(name) = $(in_scratch(name, type));
//$ end
//$ if sums_of_integers then
//$     buffer("uint32_t", "words")
//$     buffer("float", "score_units")
//$     buffer("int32_t", "zeros")
//$ end
//$ if sums then buffer(sums_of_integers and "int32_t" or "float", "sums") end
//$ if pack then buffer(tables.storage, "slice") end
    $(columns_type) columns;
    const int streams = (uintptr_t) y % 64 == 0; //$ if gather.stream
//$ if sums_of_integers then

    const int32_t zero = $hidden_integer(0); /* else its loop is a call of memset */
    for (size_t i = 0; i < $(gather.integers.tile_pitch); ++i)
        zeros[i] = zero;
//$     local parts = gather.integers.parts
    for (size_t token = 0; token < tokens; token += $(tile)) {
//$     for _, span in ipairs(gather.integers.spans) do
        $(prefix.scores)_scores_to_integers($(sum("score + token * " .. shape.slots, span.table * shape.neighbours * tile)),
            $(span.tables * shape.neighbours),
            $(sum("words + token * " .. gather.integers.quads * parts, span.table // gather.integers.step * parts * tile)),
            $(sum("score_units", span.unit_at)) + token);
//$     end
    }
//$ elseif not sums and not pack then
    (void) scratch;
//$ end

//$ for number, t in ipairs(gather.tiles) do
//$ local table, bias, to_y = sum("weights->tables", place(t.from)), sum("weights->bias", t.from), sum("y", t.from)
//$ local following = gather.tiles[number + 1]
//$ local after = sum("weights->tables", place(following and following.from or 0))
//$ if t.count > 1 then
//$     local from, to = 0, t.count * t.width
//$     if parts then from, to = "first * " .. t.width,
//$         (t.count < parts and "(end < " .. t.count .. " ? end : " .. t.count .. ")" or "end") .. " * " .. t.width end
    for (size_t column = $(from); column < $(to); column += $(t.width)) {
        const $(tables.storage) *table = weights->tables + $(place("column"));
//$     table, bias, to_y = "table", "weights->bias + column", "y + column"
//$     after = following and sum(table, place(t.width))
//$         or "column + " .. t.width .. " < " .. shape.d_out .. " ? " .. sum(table, place(t.width)) .. " : weights->tables"
//$ elseif parts then
    if ($(number == 1 and "first == 0" or "end == " .. parts)) {
//$ end
//$ if sums_of_integers then
$(include("templates/lookup/integer_sums/calls.c", { t = t, table = table, bias = bias, to_y = to_y, after = after }))
//$ else
//$ local y_place = { at = to_y, step = shape.y_step, streams = "streams" }
//$ local waits = sums and { at = "sums", step = t.width, streams = 0 } or y_place
//$ local places = { bias = { at = bias, step = 0 }, sums = waits, y = y_place }
//$ local set = {} -- what fields are
//$ local function assign(name, value)
    columns.$(name) = $(value); //$ if set[name] ~= value
//$     set[name] = value
//$ end
//$ for _, call in ipairs(gather.calls) do
//$     local loop, from, to = call.loop, places[call.from], places[call.to]
//$     assign("from", from.at)
//$     assign("from_step", from.step)
//$     assign("y", to.at)
//$     if sums then assign("y_step", to.step) end
//$     if gather.stream then assign("streams", to.streams) end
    for (size_t k = $(loop.first); k < $(loop.last); k += $(loop.step)) //$ if loop
//$     local function at(base, step)
//$         return sum(base, call.first == 0 and 0 or (loop and "k" or call.first) .. (step == 1 and "" or " * " .. of_tile(step)))
//$     end
//$     local at_table, next = table_at(table, call), next_at(table, call, after)
    $(helper)_columns_$(t.width)($(listed(at_table, pack and "slice", call.tables)),
        $(at("code", call.code_step))$(weighted and ", " .. at("score", call.code_step) or ""), &columns,
        tokens$(prefetch_next and ", " .. next or ""));
//$ end
//$ end
    } //$ if t.count > 1 or parts
//$ end
    $(isa.stream_fence()); //$ if gather.stream
}
//$ if parts then

/* All columns. */
void $(symbol)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens, void *scratch)
{
    $(gather.names.columns)(weights, code, score, y, tokens, 0, $(parts), scratch);
}
//$ end
