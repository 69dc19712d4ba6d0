//$ takes isa, tables, pitch, t, i, prefetch_next, line_elements
//$ -- A token's share in asking for the rows of the columns that come next.

$(i)    /* ask for $(prefetch_next.rows > 1 and prefetch_next.rows .. " rows" or "a row") of what comes next */
//$     if prefetch_next.every > 1 then
$(i)    if ((first + token) % $(prefetch_next.every) == 0) {
$(i)        const $(tables.storage) *row = next + (first + token) / $(prefetch_next.every) * $(pitch);
//$     else
$(i)    for (size_t n = 0; n < $(prefetch_next.rows); ++n) {
$(i)        const $(tables.storage) *row = next + ((first + token) * $(prefetch_next.rows) + n) * $(pitch);
//$     end
//$     for element = 0, t.width - 1, line_elements do
$(i)        $(isa.prefetch_l2("row", element));
//$     end
$(i)    }

