//$ takes gather, words, isa, tile, helper
//$ local low_at, partial = gather.integers.low_at, gather.integers.partial
//$ local rows = shape.neighbours == 1 and "tables" or "rows"
//$ local levels, parts = words.levels .. ".0f", words.scores
//$ local axis = #parts == 2 and "[" .. parts[1].name .. ", " .. parts[2].name .. "]" or ""
//$ local all_levels = words.levels * (words.factor or 1) .. ".0f"
//$ local largest_lane, sum_of_lanes = tile == 1 and across("max"), tile == 1 and across("add")

//$ if #words.sums == 2 then
/* Scores as 16-bit integers: score = unit (256 high + low), the bytes of $(words.rows) $(rows) in one
   word. No score is negative. The rounding error of one is at most half a unit, 1/$(2 * words.levels) of the largest
   score. If all scores are 0, the unit is 0 and the integers,
//$ elseif #parts == 1 then
/* Scores as integers up to $(words.levels) times a unit, of $(words.rows) $(rows) in one word. No score is negative.
   The rounding error of one is at most half a unit, 1/$(2 * words.levels) of the largest score. If all are 0, the unit
   is 0 and the integers,
//$ else
/* Scores as 15-bit integers times a unit. Of $(words.rows) $(rows), the first and third in one word, `even`, the
   others in `odd`. No score is negative. The rounding error of one is at most half a unit,
   1/$(2 * words.levels) of the largest score. If all are 0, the unit is 0 and the integers,
//$ end
   whatever they are, count for nothing. A NaN or an infinity makes the unit NaN.
//$ if words.factor then
   What is returned is 1/$(words.factor) of the unit: elements of rows are multiplied by $(words.factor).
//$ end
//$ if shape.neighbours > 1 and shape.score.along then
   That of a table's second row is not: sum of |z| - 2 |z of the bit that differs| >= 0, as another bit has no smaller |z|.
//$ end
//$ if tile == 1 then
   score  [$(rows)], of one token
   words  $(axis)[$(low_at)], zero behind the last $(rows == "tables" and "table" or "row") */
static inline float $(helper)_scores_to_integers(const float *score, size_t $(rows), uint32_t *words)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
    float padded[$(low_at * words.rows)];
    $(isa.vector) max = $(isa.zero()), all = $(isa.zero());
    for (size_t k = 0; k < $(low_at * words.rows); ++k)
        padded[k] = one * (k < $(rows) ? score[k] : 0.0f);
//$ loop("k", 0, low_at * words.rows, isa.lanes, function(k)
        const $(isa.vector) s$(k == "k" and "" or k) = $(isa.load_unaligned("padded", k));
        max = $(isa.max("max", k == "k" and "s" or "s" .. k));
        all = $(isa.add("all", k == "k" and "s" or "s" .. k));
//$ end)
    const float largest = $(largest_lane("max"));
    const $(isa.vector) inverse = $(isa.broadcast(levels .. " / largest"));
//$ loop("k", 0, low_at * words.rows, isa.lanes, function(k)
        const $(isa.index) q = $(words.round(isa.mul("inverse", isa.load_unaligned("padded", k))));
//$     for n, part in ipairs(parts) do
//$         local at, step = (n - 1) * low_at, "k / " .. words.rows
        $(part.store("words", k ~= "k" and at or at > 0 and at .. " + " .. step or step, "q"));
//$     end
//$ end)
    const float finite = $(sum_of_lanes("all"));
    return largest * (1.0f / $(all_levels)) + 0.0f * finite;
}
//$ else
   score  [$(rows)][$(tile)], of a tile of tokens
   words  [($(sum(rows, words.rows - 1))) / $(words.rows)]$(axis)[$(tile)]; unit [$(tile)] */
static inline void $(helper)_scores_to_integers(const float *score, size_t $(rows), uint32_t *words, float *unit)
{
//$ loop("token", 0, tile, isa.lanes, function(token)
        $(isa.vector) max = $(isa.zero()), all = $(isa.zero());
        for (size_t k = 0; k < $(rows); ++k) {
            const $(isa.vector) s = $(isa.load_unaligned("score + k * " .. tile, token));
            max = $(isa.max("max", "s"));
            all = $(isa.add("all", "s"));
        }
        const $(isa.vector) inverse = $(isa.div(isa.broadcast(levels), "max"));
        for (size_t k = 0; k < $(rows); k += $(words.rows)) {
//$     local q = {}
//$     for r = 0, words.rows - 1 do
//$         q[r + 1] = "q" .. r
//$         local value = words.round(isa.mul("inverse",
//$             isa.load_unaligned("score + " .. (r == 0 and "k" or "(" .. sum("k", r) .. ")") .. " * " .. tile,
//$             token)))
//$         if r > 0 and partial then value = sum("k", r) .. " < " .. rows .. " ? " .. value .. " : " .. isa.index_zero() end
            const $(isa.index) q$(r) = $(value);
//$     end
//$     for n, part in ipairs(parts) do
//$         local values, at = {}, "words + k * " .. #parts * tile // words.rows .. (n > 1 and " + " .. tile or "")
//$         for r, value in ipairs(part.parts(q)) do
//$             values[r] = part.name .. r - 1
            const $(isa.index) $(values[r]) = $(value);
//$         end
            $(isa.store_words(at, token, words.unite(values)));
//$     end
        }
        $(isa.store_unaligned("unit", token, isa.fma("all", isa.zero(), isa.mul("max", isa.broadcast("1.0f / " .. all_levels)))));
//$ end)
}
//$ end
