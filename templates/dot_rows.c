//$ -- `width` columns of a token, `count` strips of them in a loop or one at `at`: integers of four tables' rows times four scores, summed exactly.
//$ local dot, word = isa.dot, isa.index
//$ local function strip(at, width, i, looped)
//$     local list = dot_lines(width)
//$     for n, line in ipairs(list) do
//$         line.high, line.low = "high" .. n - 1 .. "_", "low" .. n - 1 .. "_"
$(i)$(word) $(zeros(line.high)), $(zeros(line.low));
//$     end
$(i)for (size_t k = 0; k < tables; k += $(dot.rows)) {
//$     for r = 0, dot.rows - 1 do
//$         local k = sum("k", r)
//$         if r > 0 and quads_partial then
$(i)    const size_t k$(r) = $(k) < tables ? $(k) : k;
//$             k = "k" .. r
//$         end
$(i)    const int8_t *row$(r) = $(row_of(k));
//$     end
//$     if v.prefetch and looped then
//$         for r = 0, dot.rows - 1 do
//$             for element = 0, width - 1, line_elements do
$(i)    $(isa.prefetch("row" .. r, sum("following", element)));
//$             end
//$         end
//$     end
$(i)    const $(word) scores_high = $(dot.broadcast("token_high[" .. quad_at .. "]"));
$(i)    const $(word) scores_low = $(dot.broadcast("token_low[" .. quad_at .. "]"));
//$     for _, line in ipairs(list) do
//$         local from = sum(at, line.at)
$(i)    {
//$         local rows = {}
//$         for r = 0, dot.rows - 1 do
//$             rows[r + 1] = "line" .. r
$(i)        const $(word) line$(r) = $(line.columns == dot.columns and dot.load("row" .. r, from) or dot.load_partial("row" .. r, from, line.columns));
//$         end
//$         local steps, quads = dot.interleave(rows)
//$         for _, step in ipairs(steps) do
$(i)        const $(word) $(step.name) = $(step.value);
//$         end
//$         for n, quad in ipairs(quads) do
$(i)        const $(word) quad$(n - 1) = $(quad);
//$         end
//$         for n = 0, #quads - 1 do
$(i)        $(line.high)$(n) = $(dot.dot(line.high .. n, "scores_high", "quad" .. n));
$(i)        $(line.low)$(n) = $(dot.dot(line.low .. n, "scores_low", "quad" .. n));
//$         end
$(i)    }
//$     end
//$     local sums = {}
//$     for _, line in ipairs(list) do
//$         for n = 0, 3 do sums[#sums + 1], sums[#sums + 2] = line.high .. n, line.low .. n end
//$     end
//$     lines(i .. "    ", keep(sums))
$(i)}
//$     for _, line in ipairs(list) do
$(i){
//$         local joined = {}
//$         for n = 0, 3 do
//$             joined[n + 1] = "sum" .. n
$(i)    const $(isa.vector) sum$(n) = $(dot.join(line.high .. n, line.low .. n));
//$         end
//$         local steps, ordered = dot.order(joined)
//$         for _, step in ipairs(used(steps, ordered, #line.vectors)) do
$(i)    const $(isa.vector) $(step.name) = $(step.value);
//$         end
//$         for n, part in ipairs(line.vectors) do
//$             local place = sum(at, part.at)
//$             if part.floats == isa.lanes then
$(i)    $(isa.store_unaligned("y_to", place, isa.fma("unit", ordered[n], isa.load_unaligned("y_from", place))));
//$             else
$(i)    $(isa.store_partial("y_to", place, part.floats, isa.fma("unit", ordered[n], isa.load_partial("y_from", place, part.floats))));
//$             end
//$         end
$(i)}
//$     end
//$ end
//$ if v.prefetch and not asks then
$(i)for (size_t k = 0; k < tables; ++k) {
$(i)    const int8_t *row = $(row_of("k"));
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
