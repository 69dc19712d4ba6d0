//$ -- The strips of a tile of columns of one token: one row of every table times its score.
//$ local function rows(k, numbers, at, vectors, partial, i, first, looped)
//$     for _, r in ipairs(numbers) do
//$         local number, k_r = #numbers > 1 and r or "", sum(k, r)
$(i)const $(tables.storage) *row$(number) = $(row_of(k_r));
$(i)const $(isa.vector) s$(number) = $(isa.broadcast("token_score[" .. slot(k_r) .. "]"));
//$         if v.prefetch and looped then
//$             for element = 0, vectors * isa.lanes + partial - 1, line_elements do
$(i)$(isa.prefetch("row" .. number, sum("following", element)));
//$             end
//$         end
//$         for n = 0, vectors - 1 do
$(i)sum$(first + n) = $(isa.fma("s" .. number, load_row("row" .. number, sum(at, n * isa.lanes)), "sum" .. first + n));
//$         end
//$         if partial > 0 then
$(i)sum$(first + vectors) = $(isa.fma("s" .. number, load_row_partial("row" .. number, sum(at, vectors * isa.lanes), partial), "sum" .. first + vectors));
//$         end
//$     end
//$ end
//$ local function strip(at, vectors, partial, i, first, looped)
//$     for n = 0, vectors - 1 do
$(i)$(isa.vector) sum$(first + n) = $(isa.load_unaligned("y_from", sum(at, n * isa.lanes)));
//$     end
//$     local last = first + vectors
//$     if partial > 0 then
$(i)$(isa.vector) sum$(last) = $(isa.load_partial("y_from", sum(at, vectors * isa.lanes), partial));
//$     end
//$     if #together > 1 then
$(i)for (size_t k = 0; k$(rest_rows and " + " .. #together .. " <=" or " <") $(count); k += $(#together)) {
//$         rows("k", together, at, vectors, partial, i .. "    ", first, looped)
$(i)}
//$     end
//$     if #together == 1 or rest_rows then
$(i)for (size_t k = $(#together == 1 and "0" or count .. " - " .. count .. " % " .. #together); k < $(count); ++k) {
//$         rows("k", { 0 }, at, vectors, partial, i .. "    ", first, looped)
$(i)}
//$     end
//$     for n = 0, vectors - 1 do
$(i)$(isa.store_unaligned("y_to", sum(at, n * isa.lanes), "sum" .. first + n));
//$     end
//$     if partial > 0 then
$(i)$(isa.store_partial("y_to", sum(at, vectors * isa.lanes), partial, "sum" .. last));
//$     end
//$ end
//$ if v.prefetch and not asks then
$(i)for (size_t k = 0; k < $(count); ++k) {
$(i)    const $(tables.storage) *row = $(row_of("k"));
//$     for element = 0, (s.count > 0 and s.floats or s.vectors_left * isa.lanes + s.partial) - 1, line_elements do
$(i)    $(isa.prefetch("row", element));
//$     end
$(i)}
//$ end
//$ if s.count > 1 then
$(i)for (size_t strip = 0; strip < $(s.count * s.floats); strip += $(s.floats)) {
//$     if v.prefetch then
$(i)    const size_t following = strip + $(s.floats) < $(s.rest_at + s.vectors_left * isa.lanes + s.partial) ? strip + $(s.floats) : strip;
//$     end
//$     strip("strip", s.vectors, 0, i .. "    ", 0, true)
$(i)}
//$ elseif s.count == 1 then
//$     strip(0, s.vectors, 0, i, 0)
//$ end
//$ if s.vectors_left > 0 or s.partial > 0 then
//$     strip(s.rest_at, s.vectors_left, s.partial, i, s.count == 1 and s.vectors or 0)
//$ end
