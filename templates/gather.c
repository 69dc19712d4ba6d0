//$ lines("", prologue)
//$ for _, load in ipairs(loads) do

/* $(load.n) $(load.n > 1 and "elements" or "element") of a row$(tables.scaled and ", in units of its scale" or ""). */
static inline $(isa.vector) $(load.name)(const $(tables.storage) *row)
{
    return $(load.value);
}
//$ end
//$ for _, t in ipairs(v.gather) do

//$ local s = t.strips
//$ local slots = shape.neighbours == 1 and "tables" or "tables * " .. shape.neighbours
//$ local function each(k) return tile == 1 and k or k .. " * " .. tile end
//$ local function strip(at, vectors, partial, i, first)
//$     for n = 0, vectors - 1 do
$(i)$(isa.vector) sum$(first + n) = $(isa.load_unaligned("y_from", sum(at, n * isa.lanes)));
//$     end
//$     local last = first + vectors
//$     if partial > 0 then
$(i)$(isa.vector) sum$(last) = $(isa.load_partial("y_from", sum(at, vectors * isa.lanes), partial));
//$     end
$(i)for (size_t k = 0; k < $(slots); ++k) {
$(i)    const $(tables.storage) *row = table + ($(table_of("k")) * $(shape.rows) + token_code[$(each("k"))]) * $(pitch);
$(i)    const $(isa.vector) s = $(isa.broadcast("token_score[" .. each("k") .. "]"));
//$     if v.prefetch > 0 then
$(i)    const size_t ahead = k + $(v.prefetch) < $(slots) ? k + $(v.prefetch) : k;
$(i)    const $(tables.storage) *next = table + ($(table_of("ahead")) * $(shape.rows) + token_code[$(each("ahead"))]) * $(pitch);
//$         for element = 0, vectors * isa.lanes + partial - 1, line do
$(i)    $(isa.prefetch("next", sum(at, element)));
//$         end
//$     end
//$     for n = 0, vectors - 1 do
$(i)    sum$(first + n) = $(isa.fma("s", load_row(sum(at, n * isa.lanes)), "sum" .. first + n));
//$     end
//$     if partial > 0 then
$(i)    sum$(last) = $(isa.fma("s", load_row_partial(sum(at, vectors * isa.lanes), partial), "sum" .. last));
//$     end
$(i)}
//$     for n = 0, vectors - 1 do
$(i)$(isa.store_unaligned("y_to", sum(at, n * isa.lanes), "sum" .. first + n));
//$     end
//$     if partial > 0 then
$(i)$(isa.store_partial("y_to", sum(at, vectors * isa.lanes), partial, "sum" .. last));
//$     end
//$ end
/* Adds $(shape.neighbours == 1 and "one row" or shape.neighbours .. " rows") of each of `tables` tables to $(t.width) columns of every token: y = from + sum of score times row.
   table   [tables][$(shape.rows)][$(pitch)], from the first of the columns on
   code    [$(tile == 1 and "tokens" or "tiles")]$(slots_text)$(lane_axis), from the first of the tables on; score likewise
   from    what to add to: y itself, or one row for all tokens (from_step 0); from_step in floats
   y       [tokens][$(shape.d_out)], from the first of the columns on */
static inline void $(helper)_columns_$(t.width)(const $(tables.storage) *table, size_t tables, const uint16_t *code, const float *score,
    const float *from, size_t from_step, float *y, size_t tokens)
{
//$ local i = tile == 1 and "    " or "        "
//$ if tile == 1 then
    for (size_t token = 0; token < tokens; ++token) {
        const uint16_t *token_code = code + token * $(shape.slots);
        const float *token_score = score + token * $(shape.slots);
        const float *y_from = from + token * from_step;
        float *y_to = y + token * $(shape.d_out);
//$ else
    for (size_t first = 0; first < tokens; first += $(tile)) {
        const size_t end = tokens - first < $(tile) ? tokens - first : $(tile);
        for (size_t token = 0; token < end; ++token) {
            const uint16_t *token_code = code + first * $(shape.slots) + token;
            const float *token_score = score + first * $(shape.slots) + token;
            const float *y_from = from + (first + token) * from_step;
            float *y_to = y + (first + token) * $(shape.d_out);
//$ end
//$ if s.count > 1 then
$(i)    for (size_t strip = 0; strip < $(s.count * s.floats); strip += $(s.floats)) {
//$     strip("strip", s.vectors, 0, i .. "        ", 0)
$(i)    }
//$ elseif s.count == 1 then
//$     strip(0, s.vectors, 0, i .. "    ", 0)
//$ end
//$ if s.vectors_left > 0 or s.partial > 0 then
//$     strip(s.rest_at, s.vectors_left, s.partial, i .. "    ", s.count == 1 and s.vectors or 0)
//$ end
//$ if tile > 1 then
        }
//$ end
    }
}
//$ end

/* Gather: y = bias + sum over the $(shape.neighbours == 1 and "" or shape.neighbours .. " rows of each of ")$(shape.h) tables of score times row (LookupFFN, section "Put it together").
//$ if tables.scaled then
   Rows are in units of their scale, which the score has as a factor.
//$ end
//$ if v.group < shape.h then
   Tables are taken $(v.group) at a time, for all tokens, so that their slice stays in cache.
//$ end
   weights  bound weights
   code     $(tile == 1 and "[tokens]" or "[tiles of " .. tile .. " tokens]")$(slots_text)$(lane_axis), each below $(shape.rows)
   score    the same shape
   y        [tokens][$(shape.d_out)], any alignment, must not overlap code, score or weights
   Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens)
{
//$ for _, t in ipairs(v.gather) do
//$ local call = helper .. "_columns_" .. t.width
//$ local whole, rest = shape.h // v.group, shape.h % v.group
//$ local slice = v.group * shape.rows * pitch
//$ local i, table, bias, columns = "    ", sum("weights->tables", t.from), sum("weights->bias", t.from), sum("y", t.from)
//$ if t.count > 1 then
    for (size_t column = 0; column < $(t.count * t.width); column += $(t.width)) {
//$     i, table, bias, columns = "        ", "weights->tables + column", "weights->bias + column", "y + column"
//$ end
$(i)$(call)($(table), $(v.group), code, score, $(bias), 0, $(columns), tokens);
//$ if whole > 1 then
$(i)for (size_t k = $(v.group); k < $(whole * v.group); k += $(v.group))
$(i)    $(call)($(table) + k * $(shape.rows * pitch), $(v.group), code + k * $(shape.neighbours * tile), score + k * $(shape.neighbours * tile),
$(i)        $(columns), $(shape.d_out), $(columns), tokens);
//$ end
//$ if rest > 0 then
$(i)$(call)($(sum(table, whole * slice)), $(rest), $(sum("code", whole * v.group * shape.neighbours * tile)), $(sum("score", whole * v.group * shape.neighbours * tile)),
$(i)    $(columns), $(shape.d_out), $(columns), tokens);
//$ end
//$ if t.count > 1 then
    }
//$ end
//$ end
}
