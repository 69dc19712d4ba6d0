//$ -- The sums of a line of columns as integers: what rows are added to, four at a time, and what becomes y.
//$ local dot, word, inline = isa.gather_i8, isa.index, names.macro("INLINE")

/* Sums of $(dot.columns) columns of a token, 256 high + low: the columns in the order in which interleaved rows leave them. */
typedef struct {
    $(word) high[4], low[4];
} $(helper)_sums;

//$ if sums_of_integers then
/* The sums that wait in from[$(dot.columns)]. */
$(inline) $(helper)_sums $(helper)_sums_of(const int32_t *from)
//$ else
/* The sums of no rows. */
$(inline) $(helper)_sums $(helper)_no_sums(void)
//$ end
{
    $(helper)_sums sums;
//$ for n = 0, 3 do
    sums.high[$(n)] = $(isa.index_zero());
//$ end
//$ for n = 0, 3 do
    sums.low[$(n)] = $(sums_of_integers and isa.load_words("from", n * isa.lanes) or isa.index_zero());
//$ end
    return sums;
}
//$ if dot_waits then

/* Leaves sums in to[$(dot.columns)], where they wait for more rows. */
$(inline) void $(helper)_store_sums(const $(helper)_sums *sums, int32_t *to)
{
//$     for n = 0, 3 do
    $(isa.store_words("to", n * isa.lanes, dot.join("sums->high[" .. n .. "]", "sums->low[" .. n .. "]")));
//$     end
}
//$ end
//$ for _, part in ipairs(dot_parts) do

/* Adds $(part.columns) columns of four rows times their scores, whose upper bytes are in `high` and lower ones in `low`. */
$(inline) void $(helper)_add_rows$(part.suffix)($(helper)_sums *sums, const int8_t *row0, const int8_t *row1, const int8_t *row2, const int8_t *row3,
    uint32_t high, uint32_t low)
{
    const $(word) scores_high = $(dot.broadcast("high"));
    const $(word) scores_low = $(dot.broadcast("low"));
//$     for r = 0, 3 do
    const $(word) line$(r) = $(part.columns == dot.columns and dot.load("row" .. r, 0) or dot.load_partial("row" .. r, 0, part.columns));
//$     end
//$     local steps, quads = dot.interleave { "line0", "line1", "line2", "line3" }
//$     for _, step in ipairs(steps) do
    const $(word) $(step.name) = $(step.value);
//$     end
//$     for n, quad in ipairs(quads) do
    const $(word) quad$(n - 1) = $(quad);
//$     end
//$     local sums = {}
//$     for n = 0, #quads - 1 do
//$         local high, low = "sums->high[" .. n .. "]", "sums->low[" .. n .. "]"
    $(high) = $(dot.dot(high, "scores_high", "quad" .. n));
    $(low) = $(dot.dot(low, "scores_low", "quad" .. n));
//$         sums[2 * n + 1], sums[2 * n + 2] = high, low
//$     end
//$     lines("    ", keep(sums))
}

/* Makes $(part.columns) columns of y: y = base + unit * sums. */
$(inline) void $(helper)_finish$(part.suffix)(const $(helper)_sums *sums, $(isa.vector) unit, const float *base, float *y$(v.stream and ", int streams" or ""))
{
//$     local joined = {}
//$     for n = 0, 3 do
//$         joined[n + 1] = "sum" .. n
    const $(isa.vector) sum$(n) = $(isa.float_of(dot.join("sums->high[" .. n .. "]", "sums->low[" .. n .. "]")));
//$     end
//$     local steps, ordered = dot.order(joined)
//$     for _, step in ipairs(used(steps, ordered, #part.vectors)) do
    const $(isa.vector) $(step.name) = $(step.value);
//$     end
//$     for n, vector in ipairs(part.vectors) do
//$         if v.stream then
    $(helper)_write($(sum("y", vector.at)), $(isa.fma("unit", ordered[n], isa.load_unaligned("base", vector.at))), streams);
//$         elseif vector.floats == isa.lanes then
    $(isa.store_unaligned("y", vector.at, isa.fma("unit", ordered[n], isa.load_unaligned("base", vector.at))));
//$         else
    $(isa.store_partial("y", vector.at, vector.floats, isa.fma("unit", ordered[n], isa.load_partial("base", vector.at, vector.floats))));
//$         end
//$     end
}
//$ end
//$ local function head(tables, strip)
//$     local many_tables = quads_partial and tables == "4" and "size_t tables, " or ""
$(inline) void $(helper)_add_$(tables)x$(strip.width)($(helper)_sums *sums, const int8_t *table, $(dot_pitch_parameter)$(many_tables)const uint16_t *code, const uint32_t *words$(strip.followed and ", size_t following" or ""))
//$ end
//$ for _, strip in ipairs(dot_strips) do

/* Adds one row of each of $(quads_partial and "up to four" or "four") tables to $(strip.width) columns of a token.
   table  [$(quads_partial and "tables" or 4)][$(shape.rows)][$(pack and "pitch" or pitch)]$(strip.followed and ", `following` elements before what is asked for" or "")
   code   of a token, those of the tables $(tile == 1 and "side by side" or tile .. " apart")
   words  [0] and [$(dot_low)]: the upper and the lower bytes of the tables' scores */
//$     head("4", strip)
{
//$     for r = 0, 3 do
//$         local row = dot_rows(dot_rows("table", r * shape.rows), "(size_t) code[" .. r * tile .. "]")
    const int8_t *row$(r) = $(r > 0 and quads_partial and "tables > " .. r .. " ? " .. row .. " : row0" or row);
//$     end
//$     if strip.followed then
//$         for r = 0, 3 do
//$             for element = 0, strip.width - 1, line_elements do
    $(isa.prefetch_l1("row" .. r, sum("following", element)));
//$             end
//$         end
//$     end
//$     for n, line in ipairs(strip.lines) do
    $(helper)_add_rows$(line.suffix)($(#strip.lines == 1 and "sums" or "&sums[" .. n - 1 .. "]"), $(sum("row0", line.at)), $(sum("row1", line.at)), $(sum("row2", line.at)), $(sum("row3", line.at)), words[0], words[$(dot_low)]);
//$     end
}
//$ end
//$ for _, group in ipairs(dot_groups) do
//$     local strip, n = group.strip, group.tables

/* The same for $(n) tables. */
//$     head(n, strip)
{
//$     local function add(i, k, from)
//$         local at = dot_rows("table", from * shape.rows)
//$         local codes, pairs = "code", "words"
//$         if k then at, codes, pairs = dot_rows("table", (from > 0 and "(" .. sum("k", from) .. ")" or "k") .. " * " .. shape.rows), "code + k * " .. tile, "words + k * " .. 2 * tile // dot.rows end
$(i)$(helper)_add_4x$(strip.width)(sums, $(at), $(dot_pitch_argument)$(quads_partial and (n - from < 4 and n - from or 4) .. ", " or "")$(sum(codes, from * tile)), $(sum(pairs, from // dot.rows * 2 * tile))$(strip.followed and ", following" or ""));
//$     end
//$     local whole = n - n % group.together
//$     if whole <= group.together then whole = 0 end
//$     if whole > 0 and group.together > dot.rows then
    for (size_t k = 0; k < $(whole); k += $(group.together)) {
//$         for from = 0, group.together - 1, dot.rows do add("        ", "k", from) end
    }
//$     elseif whole > 0 then
    for (size_t k = 0; k < $(whole); k += $(group.together))
//$         add("        ", "k", 0)
//$     end
//$     for from = whole, n - 1, dot.rows do add("    ", nil, from) end
}
//$ end
