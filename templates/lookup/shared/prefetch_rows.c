//$ takes isa, tables, constant, t, i, prefetch_next, line_elements
//$ -- A token's share of the prefetch of the rows that come next.

$(i)    /* prefetch $(prefetch_next.rows > 1 and prefetch_next.rows .. " rows" or "a row") of what comes next */
//$     if prefetch_next.every > 1 then
$(i)    if ((first + token) % $(prefetch_next.every) == 0) {
$(i)        const $(tables.storage) *row = next_table + (first + token) / $(prefetch_next.every) * $(constant("ROW_PITCH"));
//$     else
$(i)    for (size_t n = 0; n < $(prefetch_next.rows); ++n) {
$(i)        const $(tables.storage) *row = next_table + ((first + token) * $(prefetch_next.rows) + n) * $(constant("ROW_PITCH"));
//$     end
//$     for element = 0, t.width - 1, line_elements do
$(i)        $(isa.prefetch_l2("row", element));
//$     end
$(i)    }

