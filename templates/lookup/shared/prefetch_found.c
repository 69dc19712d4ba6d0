//$ takes isa, count, table_at, codes, first, constant, tables, prefetch_first, line_elements, place
//$ -- Prefetches the beginnings of `count` rows just found, of `codes` from number `first` on, and their scales: they come
//$ -- while the next tables are hashed. Not a function: gcc drops calls of one that does nothing else.
        if (prefetched != NULL) {
//$ loop("i", 0, type(count) == "number" and count, 1, function(i)
                const size_t number = $(sum(times(table_at(i), constant("TABLE_ROWS")), codes .. "[" .. sum(first, i) .. "]"));
                $(isa.prefetch_l1("prefetched->table_scales", "number")); //$ if tables.scaled
//$     for element = 0, prefetch_first - 1, line_elements do
                $(isa.prefetch_l2("prefetched->tables", sum("number * " .. constant("ROW_PITCH"), place(element))));
//$     end
//$ end, { to = count })
        }
