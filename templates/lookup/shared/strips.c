//$ takes gather, isa, tables, s, strip, token, i, prefetch_first, row_of, line_elements, place
//$ -- The strips of a tile of columns of one token, from left to right: what template `strip` prints of `width` columns
//$ -- from column `at` on. While one is summed, the rows of the next one are prefetched from column `prefetch_at` on:
//$ -- those of the same token or, behind its last strip, of the next one, where `ahead_code` has the codes.
//$ if gather.prefetch_strip and not gather.prefetch_tokens then
//$     local outer, i = i, prefetch_first and i .. "    " or i
//$     if prefetch_first then
$(outer)if (token > 0) { /* in a whole layer the hash prefetches those of the first one */
//$     end
$(i)for (size_t k = 0; k < $(token.count); ++k) {
$(i)    const $(tables.storage) *row = $(row_of("k", "token_code"));
//$     for element = 0, (s.count > 0 and s.floats or s.rest) - 1, line_elements do
$(i)    $(isa.prefetch_l1("row", place(element)));
//$     end
$(i)}
//$     if prefetch_first then
$(outer)}
//$     end
//$ end
//$ local first = s.count > 0 and s.floats or s.rest
//$ local function one(i, at, width, prefetches)
$(include(strip, { at = at, width = width, prefetches = prefetches, i = i, token = token }))
//$ end
//$ if s.count > 1 then
$(i)for (size_t strip = 0; strip < $(s.count * s.floats); strip += $(s.floats)) {
//$     local ahead_code = "token_code"
//$     if gather.prefetch_strip then
//$     if s.rest > 0 then
//$     local all = s.rest_at + s.rest
$(i)    const size_t prefetch_at = strip + $(2 * s.floats) <= $(all) ? strip + $(s.floats) : $(all - s.floats);
//$     elseif gather.prefetch_tokens then
//$         ahead_code = "ahead_code"
$(i)    const int ends = strip + $(s.floats) == $(s.rest_at);
$(i)    const size_t prefetch_at = ends ? 0 : strip + $(s.floats);
$(i)    const uint16_t *ahead_code = ends ? next_code : token_code;
//$     else
$(i)    const size_t prefetch_at = strip + $(s.floats) < $(s.rest_at) ? strip + $(s.floats) : strip;
//$     end
//$     end
//$     local prefetches = gather.prefetch_strip and { at = "prefetch_at", code = ahead_code, columns = s.floats }
//$     one(i .. "    ", "strip", s.floats, prefetches or false)
$(i)}
//$ else
//$     local alone = s.count == 0 or s.rest == 0
//$     for n = 1, s.count do
//$         if not alone then
$(i){
//$         end
//$         local prefetches = { at = 0, code = "next_code", columns = s.floats }
//$         if not alone then prefetches.at, prefetches.code = s.rest_at + s.rest - s.floats, "token_code" end
//$         one(alone and i or i .. "    ", 0, s.floats, gather.prefetch_tokens and prefetches or false)
//$         if not alone then
$(i)}
//$         end
//$     end
//$ end
//$ if s.rest > 0 then
//$     local alone = s.count == 0
//$     if not alone then
$(i){
//$     end
//$     local prefetches = gather.prefetch_tokens and { at = 0, code = "next_code", columns = first }
//$     one(alone and i or i .. "    ", s.rest_at, s.rest, prefetches or false)
//$     if not alone then
$(i)}
//$     end
//$ end
