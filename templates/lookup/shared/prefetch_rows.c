//$ takes isa, tables, constant, t, prefetch_next, line_elements, bytes_of
//$ -- A token's share of the prefetch of the rows that come next. Their addresses are integers: a tile's last tokens, and the
//$ -- lines behind a narrower tile, may lie behind the tables.
//$ local row_bytes = constant("ROW_PITCH")
//$ if tables.bytes > 1 then row_bytes = "(" .. row_bytes .. " * sizeof *next_table)" end

        /* prefetch $(prefetch_next.rows > 1 and prefetch_next.rows .. " rows" or "a row") of what comes next */
//$     if prefetch_next.every > 1 then
        if ((first + token) % $(prefetch_next.every) == 0) {
            const uintptr_t row = (uintptr_t) next_table + (first + token) / $(prefetch_next.every) * $(row_bytes);
            $(isa.prefetch_l2("row", bytes_of(element))); //$ for element = 0, t.width - 1, line_elements
        }
//$     else
//$ loop("n", 0, prefetch_next.rows, 1, function(n)
//$ local number = sum(times("(first + token)", prefetch_next.rows), n)
            const uintptr_t row = (uintptr_t) next_table + $(n == "n" and "(" .. number .. ")" or number) * $(row_bytes);
            $(isa.prefetch_l2("row", bytes_of(element))); //$ for element = 0, t.width - 1, line_elements
//$ end, { block = true })
//$     end

