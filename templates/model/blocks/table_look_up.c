//$ takes isa, helper
//$ -- Adds to y of a token what its queries find in these tables.
//$ local group, hash = shape.group, shape.lsh
    for (size_t head = 0; head < $(group); ++head) {
        float *out = y + token * y_step + head * $(shape.width);
        $(shape.cache.row.storage) *found[$(hash.together)];

        $(helper)_rows_of(rows, q_code + $(group > 1 and "(head * " .. hash.tables .. " + table)" or "table") * tokens + token$(hash.together > 1 and ", tokens" or ""), found);
//$ if shape.cache.limit then
        $(helper)_look_up(found, unit, out);
//$ else
//$ over_row(shape.width, function(at, load, store)
//$ local total = load("out", at)
//$ for n = 0, hash.together - 1 do total = isa.add(total, load("found[" .. n .. "]", at)) end
        $(store("out", at, total));
//$ end)
//$ end
    }
