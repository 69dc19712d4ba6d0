//$ -- A token's share in asking for the rows of the columns that come next.

$(i)    /* ask for $(ask.rows > 1 and ask.rows .. " rows" or "a row") of what comes next */
//$     if ask.every > 1 then
$(i)    if ((first + token) % $(ask.every) == 0) {
$(i)        const $(tables.storage) *row = next + (first + token) / $(ask.every) * $(pitch);
//$     else
$(i)    for (size_t n = 0; n < $(ask.rows); ++n) {
$(i)        const $(tables.storage) *row = next + ((first + token) * $(ask.rows) + n) * $(pitch);
//$     end
//$     for element = 0, t.width - 1, line_elements do
$(i)        $(isa.prefetch_l2("row", element));
//$     end
$(i)    }

