//$ -- One strip of a tile of columns of one token: one row of every table times its score.
//$ local vectors, partial = width // isa.lanes, width % isa.lanes
//$ local function rows(k, numbers, i)
//$     for _, r in ipairs(numbers) do
//$         local number, k_r = #numbers > 1 and r or "", sum(k, r)
$(i)const $(tables.storage) *row$(number) = $(row_of(k_r));
$(i)const $(isa.vector) s$(number) = $(isa.broadcast("token_score[" .. slot(k_r) .. "]"));
//$         if followed then
//$             for element = 0, width - 1, line_elements do
$(i)$(isa.prefetch_l1("row" .. number, sum("following", element)));
//$             end
//$         end
//$         for n = 0, vectors - 1 do
$(i)sum$(n) = $(isa.fma("s" .. number, load_row("row" .. number, sum(at, n * isa.lanes)), "sum" .. n));
//$         end
//$         if partial > 0 then
$(i)sum$(vectors) = $(isa.fma("s" .. number, load_row_partial("row" .. number, sum(at, vectors * isa.lanes), partial), "sum" .. vectors));
//$         end
//$     end
//$ end
//$ for n = 0, vectors - 1 do
$(i)$(isa.vector) sum$(n) = $(isa.load_unaligned("y_from", sum(at, n * isa.lanes)));
//$ end
//$ if partial > 0 then
$(i)$(isa.vector) sum$(vectors) = $(isa.load_partial("y_from", sum(at, vectors * isa.lanes), partial));
//$ end
//$ if #together > 1 then
$(i)for (size_t k = 0; k$(rest_rows and " + " .. #together .. " <=" or " <") $(count); k += $(#together)) {
//$     rows("k", together, i .. "    ")
$(i)}
//$ end
//$ if #together == 1 or rest_rows then
$(i)for (size_t k = $(#together == 1 and "0" or count .. " - " .. count .. " % " .. #together); k < $(count); ++k) {
//$     rows("k", { 0 }, i .. "    ")
$(i)}
//$ end
//$ for n = 0, vectors - 1 do
//$     if v.stream then
$(i)$(helper)_write($(sum("y_to", sum(at, n * isa.lanes))), sum$(n), streams);
//$     else
$(i)$(isa.store_unaligned("y_to", sum(at, n * isa.lanes), "sum" .. n));
//$     end
//$ end
//$ if partial > 0 then
$(i)$(isa.store_partial("y_to", sum(at, vectors * isa.lanes), partial, "sum" .. vectors));
//$ end
