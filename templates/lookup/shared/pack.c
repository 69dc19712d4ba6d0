//$ takes isa, helper, tables, constant, pack, t, line_elements, vector_elements, place
//$ -- Copies a slice of the tables.

/* Copies $(plural(t.width, "column")) of every row side by side: a slice that was spread over many pages then lies on
   few, and stays in cache. Returns it.
   table  [tables][$(shape.rows)][$(constant("ROW_PITCH"))], from the first of the columns on
   slice  [tables][$(shape.rows)][$(pack.pitch)]$(t.width % line_elements > 0 and ", whole lines of it are written" or "") */
static inline const $(tables.storage) *$(helper)_pack_$(t.width)(const $(tables.storage) *table, size_t tables, $(tables.storage) *slice)
{
    const size_t rows = tables * $(shape.rows);
    for (size_t n = 0; n < rows; ++n) {
        const $(tables.storage) *row = table + n * $(constant("ROW_PITCH"));
//$ if pack.word then
        const $(tables.storage) *later = n + $(pack.distance) < rows ? row + $(pack.distance) * $(constant("ROW_PITCH")) : row;
//$ end
        $(tables.storage) *piece = slice + n * $(pack.pitch);
        $(isa[pack.word]("later", place(element))); //$ if pack.word for element = 0, t.width - 1, line_elements
//$ for line = 0, t.width - 1, line_elements do
//$     for element = line, line + line_elements - 1, vector_elements do
        $(isa.store_words("piece", place(element), isa.load_words("row", place(element))));
//$     end
//$ end
    }
    return slice;
}
