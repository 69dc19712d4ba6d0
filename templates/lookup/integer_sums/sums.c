//$ takes gather, words, isa, tile, helper, prefix, row_pitch, line_elements, pitch_parameter, pitch_argument, tables_on, tables, place
//$ -- Functions that add the rows of a group of tables to the sums of a strip of columns.
//$ local inline, plan = names.macro("INLINE"), gather.integers
//$ local m, step = shape.neighbours, plan.step
//$ local function head(rows, strip)
//$     local many_tables = plan.partial and rows == "4" and "size_t tables, " or ""
//$     local tokens_ahead = ", const " .. tables.storage .. " *ahead, const uint16_t *ahead_code"
//$     local ahead = strip.prefetches > 0 and (gather.prefetch_tokens and tokens_ahead or ", size_t prefetch_at") or ""
$(inline) void $(helper)_add_$(rows)x$(strip.width)($(prefix.line)_sums *sums, const $(tables.storage) *table,
    $(pitch_parameter)$(many_tables)const uint16_t *code, const uint32_t *words$(ahead))
//$ end
//$ for _, strip in ipairs(plan.strips) do
//$     local prefetches, tokens_ahead = strip.prefetches > 0, strip.prefetches > 0 and gather.prefetch_tokens
//$     local before = prefetches and not tokens_ahead and ", `prefetch_at` elements before what is prefetched" or ""
//$     local bytes = "the scores of the " .. (m == 1 and "tables" or "rows")
//$     if #words.sums == 2 then bytes = "the upper and the lower bytes of the tables' scores" end
//$     local word = plan.parts == 1 and "one: " or "[0] and [" .. plan.low_at .. "]: "

/* Adds $(m == 1 and "one row" or m .. " rows") of each of
   $(plan.partial and "up to " or "")$(step == 4 and "four" or step) tables to $(plural(strip.width, "column")) of a
   token, `sums`.
   table  [$(plan.partial and "tables" or step)][$(shape.rows)][$(row_pitch)]$(before)
   code   of a token, those of the tables $(tile == 1 and "side by side" or tile .. " apart")
   words  $(word)$(bytes)$(tokens_ahead and "" or " */")
   ahead  the same tables, from the first column on that is prefetched, of the rows in ahead_code */ //$ if tokens_ahead
//$     head("4", strip)
{
//$     local function row_of(table, code, r)
//$         return tables_on(table, r // m) .. " + (size_t) " .. code .. "[" .. r * tile .. "] * " .. row_pitch
//$     end
//$     for r = 0, 3 do
//$         local row, number = row_of("table", "code", r), r // m -- of the table
    const $(tables.storage) *row$(r) = $(number > 0 and plan.partial and "tables > " .. number .. " ? " .. row .. " : row0" or row);
//$     end
//$     if tokens_ahead then
//$         for r = 0, 3 do
//$             local row, number = row_of("ahead", "ahead_code", r), r // m
    const $(tables.storage) *ahead$(r) = $(number > 0 and plan.partial and "tables > " .. number .. " ? " .. row .. " : ahead0" or row);
//$         end
//$     end
//$     for r = 0, prefetches and 3 or -1 do
//$         for element = 0, strip.prefetches - 1, line_elements do
//$             local row, units = "row" .. r, place(sum("prefetch_at", element))
//$             if tokens_ahead then row, units = "ahead" .. r, place(element) end
    $(isa[gather.prefetch_strip](row, units));
//$         end
//$     end
//$     for n, line in ipairs(strip.lines) do
//$         local at = place(line.at)
    $(prefix.line)_add_four_rows$(line.suffix)($(#strip.lines == 1 and "sums" or "&sums[" .. n - 1 .. "]"),
        $(sum("row0", at)), $(sum("row1", at)), $(sum("row2", at)), $(sum("row3", at)),$(plan.parts == 2 and " words[0]," or "")
        words[$(plan.parts == 2 and plan.low_at or 0)]);
//$     end
}
//$ end
//$ for _, group in ipairs(plan.groups) do
//$     local strip, n = group.strip, group.tables

/* The same for $(plural(n, "table")). */
//$     head(n * m, strip)
{
//$     local function add(k, from)
//$         local function table_at(table) return tables_on(table, sum(k or 0, from)) end
//$         local function code_at(code) return sum(code, times(k or 0, m * tile), from * m * tile) end
//$         local words_at = sum("words", times(k or 0, plan.parts * tile // step), from // step * plan.parts * tile)
//$         local following = strip.prefetches == 0 and ""
//$             or gather.prefetch_tokens and ", " .. table_at("ahead") .. ", " .. code_at("ahead_code")
//$             or ", prefetch_at"
        $(helper)_add_4x$(strip.width)(sums, $(table_at("table")),
            $(pitch_argument)$(plan.partial and (n - from < step and n - from or step) .. ", " or "")$(code_at("code")),
            $(words_at)$(following));
//$     end
//$     local whole = n - n % group.together
//$     if whole <= group.together then whole = 0 end
//$     if whole > 0 and group.together > step then
    for (size_t k = 0; k < $(whole); k += $(group.together)) {
//$         for from = 0, group.together - 1, step do add("k", from) end
    }
//$     elseif whole > 0 then
    for (size_t k = 0; k < $(whole); k += $(group.together))
//$         add("k", 0)
//$     end
//$     for from = whole, n - 1, step do add(nil, from) end
}
//$ end
