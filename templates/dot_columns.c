//$ -- Functions that add rows to a tile of columns of every token: integers of four tables' rows times four scores, summed exactly. Sums wait as
//$ -- integers, in the order in which the interleaved rows leave them; those of the last tables become floats in y.
//$ local dot, word = isa.dot, isa.index
//$ for _, place in ipairs(dot_places) do
//$ for _, run in ipairs(dot_runs) do

//$ local name = dot_name(run, t, place)
/* Adds one row of each of $(run.tables) tables$(place.apart and ", which are not copied," or "") to $(t.width) columns of every token: $(run.last and "y = base + unit * (from + sum of score times row)" or "sums = from + sum of score times row").
   table   [$(run.tables)][$(shape.rows)][$(place.pitch)], from the first of the columns on
   code    [tiles]$(slots_text)$(lane_axis), from the first of the tables on
   words   [tiles][$(dot_quads)][2]$(lane_axis), likewise: scores as integers
   from    sums of earlier tables, or zeros for all tokens (from_step 0)
//$ if run.last then
   unit    of the tokens' scores
   base    what to add: y itself, or one row for all tokens (base_step 0)
   y       the columns of every token$(ask and "" or " */")
//$ else
   sums    [tokens][$(dot_pitch(t.width))], may be `from`$(ask and "" or " */")
//$ end
//$ if ask then
   next    [$(v.group)][$(shape.rows)][$(pitch)], the columns that will be read after these: tokens ask for their rows in turn */
//$ end
static void $(name)(const $(tables.storage) *table, const uint16_t *code, const uint32_t *words,
    const int32_t *from, size_t from_step, $(run.last and "const float *unit, const float *base, size_t base_step, float *y" or "int32_t *sums"), size_t tokens$(ask and ", const " .. tables.storage .. " *next" or ""))
{
    for (size_t first = 0; first < tokens; first += $(tile), code += $(shape.slots * tile), words += $(dot_quads * 2 * tile)) {
        const size_t end = tokens - first < $(tile) ? tokens - first : $(tile);
//$ if run.last then
        for (size_t token = 0; token < end; ++token, from += from_step, base += base_step, y += $(shape.y_step)) {
            const $(isa.vector) token_unit = $(isa.broadcast("unit[first + token]"));
//$ else
        for (size_t token = 0; token < end; ++token, from += from_step, sums += $(dot_pitch(t.width))) {
//$ end
            const uint16_t *token_code = code + token;
            const uint32_t *token_words = words + token;
//$ if ask then
$(include("templates/ask_rows.c", { t = t, i = "        " }))
//$ end
//$ local s, i, row_words = t.strips, "            ", shape.rows * place.pitch
//$ -- The rows of four tables, `k` of them ahead of the loop's variable `loop` if there is one.
//$ local function quad(k, loop, at, list, i, looped)
//$     local rows = {}
$(i){
//$     for r = 0, dot.rows - 1 do
//$         local number = k + r < run.tables and r or 0
//$         rows[r + 1] = "line" .. number
//$         if number == r then
//$             local before = sum(loop and "table + " .. loop .. " * " .. row_words or "table", (k + r) * row_words)
//$             local index = loop and "(" .. sum(loop, k + r) .. ") * " .. tile or (k + r) * tile
$(i)    const int8_t *row$(r) = $(before) + (size_t) token_code[$(index)] * $(place.pitch);
//$             if v.prefetch and looped then
//$                 for element = 0, list.width - 1, line_elements do
$(i)    $(isa.prefetch("row" .. r, sum("following", element)));
//$                 end
//$             end
//$         end
//$     end
//$     local words = k // dot.rows * 2 * tile
//$     if loop then words = sum(loop .. " * " .. 2 * tile // dot.rows, words) end
$(i)    const $(word) scores_high = $(dot.broadcast("token_words[" .. words .. "]"));
$(i)    const $(word) scores_low = $(dot.broadcast("token_words[" .. sum(words, tile) .. "]"));
//$     for _, line in ipairs(list) do
$(include("templates/dot_line.c", { line = line, rows = rows, from = sum(at, line.at), i = i .. "    " }))
//$     end
$(i)}
//$ end
//$ local function strip(at, width, i, looped)
//$     local list, sums, quads = dot_lines(width), {}, (run.tables + dot.rows - 1) // dot.rows
//$     list.width = width
//$     for n, line in ipairs(list) do
//$         line.high, line.low = "high" .. n - 1 .. "_", "low" .. n - 1 .. "_"
$(i)$(word) $(zeros(line.high));
//$         for n = 0, 3 do
$(i)$(word) $(line.low)$(n) = $(isa.load_words("from", sum(at, line.at + n * isa.lanes)));
//$             sums[#sums + 1], sums[#sums + 2] = line.high .. n, line.low .. n
//$         end
//$     end
//$     local together = math_min(v.unroll // dot.rows, quads)
//$     local steps = run.tables // (together * dot.rows)
//$     local loop = steps > 1
//$     if loop then
$(i)for (size_t k = 0; k < $(steps * together * dot.rows); k += $(together * dot.rows)) {
//$         for q = 0, together - 1 do quad(q * dot.rows, "k", at, list, i .. "    ", looped) end
//$         lines(i .. "    ", keep(sums))
$(i)}
//$     end
//$     for q = loop and steps * together or 0, quads - 1 do quad(q * dot.rows, nil, at, list, i, looped) end
//$     for _, line in ipairs(list) do
//$         if run.last then
//$             local joined = {}
//$             for n = 0, 3 do joined[n + 1] = isa.float_of(dot.join_integers(line.high .. n, line.low .. n)) end
$(include("templates/dot_finish.c", { line = line, joined = joined, at = at, i = i, unit = "token_unit", y_from = "base", y_to = "y" }))
//$         else
//$             for n = 0, 3 do
$(i)$(isa.store_words("sums", sum(at, line.at + n * isa.lanes), dot.join_integers(line.high .. n, line.low .. n)));
//$             end
//$         end
//$     end
//$ end
//$ if v.prefetch then
$(i)for (size_t k = 0; k < $(run.tables); ++k) {
$(i)    const int8_t *row = table + k * $(row_words) + (size_t) token_code[k * $(tile)] * $(place.pitch);
//$     for element = 0, (s.count > 0 and s.floats or s.vectors_left * dot.columns + s.partial) - 1, line_elements do
$(i)    $(isa.prefetch("row", element));
//$     end
$(i)}
//$ end
//$ if s.count > 1 then
$(i)for (size_t strip = 0; strip < $(s.count * s.floats); strip += $(s.floats)) {
//$     if v.prefetch then
$(i)    const size_t following = strip + $(s.floats) < $(s.rest_at + s.vectors_left * dot.columns + s.partial) ? strip + $(s.floats) : strip;
//$     end
//$     strip("strip", s.floats, i .. "    ", true)
$(i)}
//$ elseif s.count == 1 then
$(i){
//$     strip(0, s.floats, i .. "    ")
$(i)}
//$ end
//$ if s.vectors_left > 0 or s.partial > 0 then
$(i){
//$     strip(s.rest_at, s.vectors_left * dot.columns + s.partial, i .. "    ")
$(i)}
//$ end
        }
    }
}
//$ end
//$ end
