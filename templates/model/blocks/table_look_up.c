//$ takes isa, helper, rows_of
//$ -- Adds to y of a token what its queries find in these tables.
//$ local hash, group = shape.lsh, shape.group
//$ local row, all = group > 1, "found0"
//$ for n = 1, hash.together - 1 do all = all .. ", found" .. n end
//$ local function code(n)
//$     local of_row = row and " + row * " .. hash.tables .. " * tokens" or ""
//$     return "q_code[" .. (n > 0 and "(table + " .. n .. ")" or "table") .. " * tokens" .. of_row .. " + token]"
//$ end
    for (size_t row = 0; row < $(group); ++row) { //$ if row
        float *out = y + token * y_step$(row and " + row * " .. shape.width or "");
//$ lines(rows_of("const ", "found", code))

//$ if shape.cache.limit then
        $(helper)_look_up(rows, $(all), unit, out);
//$ else
//$ over_row(shape.width, function(at, load, store)
//$ local total = load("out", at)
//$ for n = 0, hash.together - 1 do total = isa.add(total, load("found" .. n, at)) end
        $(store("out", at, total));
//$ end)
//$ end
    } //$ if row
