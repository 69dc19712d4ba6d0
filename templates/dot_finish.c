//$ -- The sums of a line of columns, `joined` by vectors: in their order, times the scores' unit, added to what y is made from.
//$ local dot = isa.dot
$(i){
//$ local names = {}
//$ for n = 0, 3 do
//$     names[n + 1] = "sum" .. n
$(i)    const $(isa.vector) sum$(n) = $(joined[n + 1]);
//$ end
//$ local steps, ordered = dot.order(names)
//$ for _, step in ipairs(used(steps, ordered, #line.vectors)) do
$(i)    const $(isa.vector) $(step.name) = $(step.value);
//$ end
//$ for n, part in ipairs(line.vectors) do
//$     local place = sum(at, part.at)
//$     if part.floats == isa.lanes then
$(i)    $(isa.store_unaligned(y_to, place, isa.fma(unit, ordered[n], isa.load_unaligned(y_from, place))));
//$     else
$(i)    $(isa.store_partial(y_to, place, part.floats, isa.fma(unit, ordered[n], isa.load_partial(y_from, place, part.floats))));
//$     end
//$ end
$(i)}
