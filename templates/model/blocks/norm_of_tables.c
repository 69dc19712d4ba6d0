//$ takes isa, from, to, width, chance, sum_of_lanes
//$ -- The norm of a row of sums of tables: x / sqrt(|x|^2 + (tables eps)^2).
    $(isa.vector) square = $(isa.zero());

//$ over_row(width, function(at, load)
        square = $(isa.fma(load(from, at), load(from, at), "square"));
//$ end)
    const float length = $(sum_of_lanes("square")) + $(chance.least); /* ($(chance.count) * $(chance.eps_text))^2 */
    const $(isa.vector) factor = $(isa.reciprocal_root(isa.broadcast("length")));
//$ over_row(width, function(at, load, store)
        $(store(to, at, isa.mul("factor", load(from, at))));
//$ end)
