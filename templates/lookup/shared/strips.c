//$ takes gather, isa, tables, s, strip, token, prefetch_first, row_of, line_elements, place
//$ -- The strips of a tile of columns of one token, from left to right: what template `strip` prints of `width` columns
//$ -- from column `at` on. While one is summed, the rows of the next one are prefetched from column `prefetch_at` on:
//$ -- those of the same token or, behind its last strip, of the next one, where `ahead_code` has the codes.
//$ if gather.prefetch_strip and not gather.prefetch_tokens then
    if (token > 0) { /* in a whole layer the hash prefetches those of the first one */ //$ if prefetch_first
        for (size_t k = 0; k < $(token.count); ++k) {
            const $(tables.storage) *row = $(row_of("k", "token_code"));
//$     for element = 0, (s.count > 0 and s.floats or s.rest) - 1, line_elements do
            $(isa.prefetch_l1("row", place(element)));
//$     end
        }
    } //$ if prefetch_first
//$ end
//$ local first = s.count > 0 and s.floats or s.rest
//$ local function one(at, width, prefetches)
$(include(strip, { at = at, width = width, prefetches = prefetches, token = token }))
//$ end
//$ if s.count > 1 then
    for (size_t strip = 0; strip < $(s.count * s.floats); strip += $(s.floats)) {
//$     local ahead_code = "token_code"
//$     if gather.prefetch_strip then
//$     if s.rest > 0 then
//$     local all = s.rest_at + s.rest
        const size_t prefetch_at = strip + $(2 * s.floats) <= $(all) ? strip + $(s.floats) : $(all - s.floats);
//$     elseif gather.prefetch_tokens then
//$         ahead_code = "ahead_code"
        const int ends = strip + $(s.floats) == $(s.rest_at);
        const size_t prefetch_at = ends ? 0 : strip + $(s.floats);
        const uint16_t *ahead_code = ends ? next_code : token_code;
//$     else
        const size_t prefetch_at = strip + $(s.floats) < $(s.rest_at) ? strip + $(s.floats) : strip;
//$     end
//$     end
//$     local prefetches = gather.prefetch_strip and { at = "prefetch_at", code = ahead_code, columns = s.floats }
//$     one("strip", s.floats, prefetches or false)
    }
//$ else
//$     local alone = s.count == 0 or s.rest == 0
//$     for n = 1, s.count do
    { //$ if not alone
//$         local prefetches = { at = 0, code = "next_code", columns = s.floats }
//$         if not alone then prefetches.at, prefetches.code = s.rest_at + s.rest - s.floats, "token_code" end
//$         one(0, s.floats, gather.prefetch_tokens and prefetches or false)
    } //$ if not alone
//$     end
//$ end
//$ if s.rest > 0 then
//$     local alone = s.count == 0
    { //$ if not alone
//$     local prefetches = gather.prefetch_tokens and { at = 0, code = "next_code", columns = first }
//$     one(s.rest_at, s.rest, prefetches or false)
    } //$ if not alone
//$ end
