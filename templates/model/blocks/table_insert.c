//$ takes isa, helper
//$ -- Adds `value` to the rows `into0` … of tables.
//$ local all = "into0"
//$ for n = 1, shape.lsh.together - 1 do all = all .. ", into" .. n end
//$ if shape.cache.limit then
        if ($(helper)_exceeds(value, unit)) //$ if shape.causal
            unit = $(helper)_unit($(helper)_peak(value, 0, 1), unit, rows); //$ if shape.causal
        unit = $(helper)_insert(value, $(all), unit, rows);
//$ else
//$ over_row(shape.width, function(at, load, store)
        const $(isa.vector) x = $(load("value", at));
        $(store("into" .. n, at, isa.add(load("into" .. n, at), "x"))); //$ for n = 0, shape.lsh.together - 1
//$ end, { block = true })
//$ end
