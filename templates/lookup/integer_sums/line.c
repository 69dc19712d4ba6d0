//$ takes gather, words, isa, helper, tables, barriers, commas, each_sum
//$ -- The sums of a line of columns as integers, and what adds four rows to them.
//$ local word, inline, plan = isa.index, names.macro("INLINE"), gather.integers
//$ local m = shape.neighbours
//$ local rows, scores, products = {}, {}, {}
//$ for r = 0, 3 do rows[r + 1] = "const " .. tables.storage .. " *row" .. r end
//$ for n, part in ipairs(words.scores) do scores[n], products[n] = "uint32_t " .. part.name, "scores_" .. part.name end

//$ if #words.sums == 2 then
/* Sums of $(plural(words.columns, "column")) of a token, 256 high + low: the columns in the order in which interleaved rows leave them.
   They are exact: a byte of a score (0 … 255) times an element of a row (-128 … 127) is below 2^15, four such products are added to
   a 32-bit sum without saturation, and at most $(plan.max_rows) $(m == 1 and "tables" or "rows") share a
   unit: $(words.levels) * 128 * $(plan.max_rows) < 2^31. */
//$ else
/* Sums of $(plural(words.columns, "column")) of a token: the columns in the order in which interleaved rows leave
   them. They are exact: at most $(plan.max_rows) $(m == 1 and "tables" or "rows") share a unit,
   and $(words.levels) (a score) * 128 (an element of a row) * $(plan.max_rows) < 2^31. */
//$ end
typedef struct {
    $(word) $(commas(each_sum("", "[" .. plan.vectors .. "]")));
} $(helper)_sums;
//$ for _, part in ipairs(plan.lines) do

//$     if #words.sums == 2 then
/* Adds $(plural(part.columns, "column")) of four rows times their scores, whose upper bytes are in `high` and lower ones in `low`. */
//$     elseif #scores == 1 then
/* Adds $(plural(part.columns, "column")) of four rows times their scores, a byte each. */
//$     else
/* Adds $(plural(part.columns, "column")) of four rows times their scores: those of row0 and row2 are in `even`, the others in `odd`. */
//$     end
$(inline) void $(helper)_add_four_rows$(part.suffix)($(helper)_sums *sums,
    $(commas(rows)), $(commas(scores)))
{
    const $(word) $(products[n]) = $(words.broadcast(part.name)); //$ for n, part in ipairs(words.scores)
//$     for r = 0, 3 do
//$ local row, whole = "row" .. r, part.columns == words.columns
    const $(word) line$(r) = $(whole and words.load(row, 0) or words.load_partial(row, 0, part.columns));
//$     end
//$     local steps, quads = words.interleave { "line0", "line1", "line2", "line3" }
    const $(word) $(step.name) = $(step.value); //$ for _, step in ipairs(steps)
    const $(word) quad$(n - 1) = $(quad); //$ for n, quad in ipairs(quads)
//$     local all = {}
//$     for n = 0, #quads - 1 do
//$         local sums = each_sum("sums->", "[" .. n .. "]")
//$         for k, value in ipairs(words.add(sums, products, "quad" .. n)) do
    $(sums[k]) = $(value);
//$             all[#all + 1] = sums[k]
//$         end
//$     end
//$     lines(barriers(all))
}
//$ end
