//$ takes isa, i, from, to, width, chance, sum_of_lanes
//$ -- The norm of a row of sums of tables: x / sqrt(|x|^2 + (tables eps)^2).
$(i)$(isa.vector) square = $(isa.zero());

//$ over_row(i, width, function(i, at, load)
$(i)square = $(isa.fma(load(from, at), load(from, at), "square"));
//$ end)
$(i)const float length = $(sum_of_lanes("square")) + $(chance.least);
$(i)const $(isa.vector) factor = $(isa.reciprocal_root(isa.broadcast("length")));
//$ over_row(i, width, function(i, at, load, store)
$(i)$(store(to, at, isa.mul("factor", load(from, at))));
//$ end)
