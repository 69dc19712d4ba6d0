//$ takes isa, helper, codes
//$ -- Adds `value` to the rows of tables that it meets. codes: where its codes lie, and the step from table to table.
        $(shape.cache.row.storage) *into[$(shape.lsh.together)];

        $(helper)_rows_of(rows, $(codes), into);
//$ if shape.cache.limit then
        if ($(helper)_exceeds(value, unit)) //$ if shape.causal
            unit = $(helper)_unit($(helper)_peak(value, 0, 1), unit, rows); //$ if shape.causal
        unit = $(helper)_insert(value, into, unit, rows);
//$ else
//$ over_row(shape.width, function(at, load, store)
        const $(isa.vector) x = $(load("value", at));
        $(store("into[" .. n .. "]", at, isa.add(load("into[" .. n .. "]", at), "x"))); //$ for n = 0, shape.lsh.together - 1
//$ end, { block = true })
//$ end
