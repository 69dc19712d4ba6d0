//$ takes helper
//$ -- Where the rows of some tables lie that a token meets.
//$ local pitch, together = names.constant("VALUE_PITCH"), shape.lsh.together
//$ local storage = shape.cache.row.storage

/* row[n] = the row of table n that code[n * step] is the code of; the first of these tables begins at `rows`. */
static inline void $(helper)_rows_of($(storage) *rows, const uint16_t *code$(together > 1 and ", size_t step" or ""), $(storage) **row)
{
    row[$(n)] = $(sum("rows", times(n, shape.lsh.rows .. " * " .. pitch))) + (size_t) code[$(times(n, "step"))] * $(pitch); //$ for n = 0, together - 1
}
