//$ takes isa, helper, rows_of, code_of
//$ -- Adds to y of a token what its queries find in these tables.
//$ local group, row, all = shape.group, shape.group > 1, "found0"
//$ for n = 1, shape.lsh.together - 1 do all = all .. ", found" .. n end
//$ local at = row and "row * " .. shape.lsh.tables .. " * tokens + token" or "token"
    for (size_t row = 0; row < $(group); ++row) { //$ if row
        float *out = y + token * y_step$(row and " + row * " .. shape.width or "");
//$ lines(rows_of("const ", "found", code_of("q_code", "tokens", at)))

//$ if shape.cache.limit then
        $(helper)_look_up(rows, $(all), unit, out);
//$ else
//$ over_row(shape.width, function(at, load, store)
//$ local total = load("out", at)
//$ for n = 0, shape.lsh.together - 1 do total = isa.add(total, load("found" .. n, at)) end
        $(store("out", at, total));
//$ end)
//$ end
    } //$ if row
