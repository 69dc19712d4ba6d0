//$ takes gather, isa, tables, weighted, at, width, prefetches, token, unroll, rest_rows, line_elements, place,
//$ takes load_row, load_row_partial, row_of, slot
//$ -- One strip of a tile of columns of one token: one row of every table, times its score if rows are weighted.
//$ local vectors, partial = width // isa.lanes, width % isa.lanes
//$ local function added(number, row, to) return weighted and isa.fma("s" .. number, row, to) or isa.add(to, row) end
//$ local function rows(k, count)
//$     for r = 0, count - 1 do
//$         local number, k_r = count > 1 and r or "", sum(k, r)
        const $(tables.storage) *row$(number) = $(row_of(k_r, "token_code"));
        const $(isa.vector) s$(number) = $(isa.broadcast("token_score[" .. slot(k_r) .. "]")); //$ if weighted
//$         if prefetches then
//$             local row = "row" .. number
//$             if prefetches.code ~= "token_code" then
//$                 row = "ahead" .. number
        const $(tables.storage) *$(row) = $(row_of(k_r, prefetches.code));
//$             end
//$             for element = 0, prefetches.columns - 1, line_elements do
        $(isa[gather.prefetch_strip](row, place(sum(prefetches.at, element))));
//$             end
//$         end
//$         for n = 0, vectors - 1 do
        sum$(n) = $(added(number, load_row("row" .. number, sum(at, n * isa.lanes)), "sum" .. n));
//$         end
//$         if partial > 0 then
        sum$(vectors) = $(added(number, load_row_partial("row" .. number, sum(at, vectors * isa.lanes), partial), "sum" .. vectors));
//$         end
//$     end
//$ end
    $(isa.vector) sum$(n) = $(isa.load_unaligned(token.from, sum(at, n * isa.lanes))); //$ for n = 0, vectors - 1
//$ if partial > 0 then
    $(isa.vector) sum$(vectors) = $(isa.load_partial(token.from, sum(at, vectors * isa.lanes), partial));
//$ end
//$ if unroll > 1 then
    for (size_t k = 0; k$(rest_rows and " + " .. unroll .. " <=" or " <") $(token.count); k += $(unroll)) {
//$     rows("k", unroll)
    }
//$ end
//$ if unroll == 1 or rest_rows then
    for (size_t k = $(unroll == 1 and "0" or token.count .. " - " .. token.count .. " % " .. unroll); k < $(token.count); ++k) {
//$     rows("k", 1)
    }
//$ end
//$ for n = 0, vectors - 1 do
    $(token.store_y)($(sum(token.to, sum(at, n * isa.lanes))), sum$(n), streams); //$ if gather.stream
    $(isa.store_unaligned(token.to, sum(at, n * isa.lanes), "sum" .. n)); //$ if not gather.stream
//$ end
    $(isa.store_partial(token.to, sum(at, vectors * isa.lanes), partial, "sum" .. vectors)); //$ if partial > 0
