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
$(include("templates/dot_line.c", { line = line, rows = { "line0", "line1", "line2", "line3" }, from = sum(at, line.at), i = i .. "    " }))
//$     end
//$     local sums = {}
//$     for _, line in ipairs(list) do
//$         for n = 0, 3 do sums[#sums + 1], sums[#sums + 2] = line.high .. n, line.low .. n end
//$     end
//$     lines(i .. "    ", keep(sums))
$(i)}
//$     for _, line in ipairs(list) do
//$         local joined = {}
//$         for n = 0, 3 do joined[n + 1] = dot.join(line.high .. n, line.low .. n) end
$(include("templates/dot_finish.c", { line = line, joined = joined, at = at, i = i, unit = "unit", y_from = "y_from", y_to = "y_to" }))
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
