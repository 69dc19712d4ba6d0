//$ takes isa, helper, count, codes
//$ -- Clears the rows of tables that `count` tokens meet. codes: where those of a token lie, and the step to the next table.
        for (size_t token = 0; token < $(count); ++token) {
            float *met[$(shape.lsh.together)];

            $(helper)_rows_of(rows, $(codes), met);
//$ over_row(shape.width, function(at, load, store)
            $(store("met[" .. n .. "]", at, isa.broadcast("zero"))); //$ for n = 0, shape.lsh.together - 1
//$ end, { block = true })
        }
