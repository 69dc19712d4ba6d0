//$ takes isa, rows_of, count, code
//$ -- Clears the rows of these tables that `count` tokens meet, whose codes are code(n).
        for (size_t token = 0; token < $(count); ++token) {
//$ lines(rows_of("", "met", code))

//$ over_row(shape.width, function(at, load, store)
            $(store("met" .. n, at, isa.broadcast("zero"))); //$ for n = 0, shape.lsh.together - 1
//$ end, { block = true })
        }
