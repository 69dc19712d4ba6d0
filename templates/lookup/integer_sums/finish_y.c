//$ takes gather, words, isa, helper, sums_type, store_y, used, each_sum
//$ -- What makes y of the sums of a line of columns.
//$ local inline = names.macro("INLINE")
//$ for _, part in ipairs(gather.integers.lines) do

/* Makes $(plural(part.columns, "column")) of y: y = base + unit * sums. */
$(inline) void $(helper)_$(store_y and "stream" or "finish")_y$(part.suffix)(const $(sums_type) *sums,
    $(isa.vector) unit, const float *base, float *y$(store_y and ", int streams" or ""))
{
//$     local joined, all = {}, {}
//$     for n = 0, gather.integers.vectors - 1 do
//$         joined[n + 1] = "sum" .. n
//$         all[n + 1] = { name = "sum" .. n, value = isa.float_of(words.total(each_sum("sums->", "[" .. n .. "]"))) }
//$     end
//$     local steps, ordered = words.order(joined)
//$     for _, step in ipairs(steps) do
//$         all[#all + 1] = step
//$     end
    const $(isa.vector) $(step.name) = $(step.value); //$ for _, step in ipairs(used(all, ordered, #part.vectors))
//$     for n, vector in ipairs(part.vectors) do
//$         if store_y then
    $(store_y)($(sum("y", vector.at)), $(isa.fma("unit", ordered[n], isa.load_unaligned("base", vector.at))), streams);
//$         elseif vector.floats == isa.lanes then
    $(isa.store_unaligned("y", vector.at, isa.fma("unit", ordered[n], isa.load_unaligned("base", vector.at))));
//$         else
//$             local base = isa.load_partial("base", vector.at, vector.floats)
    $(isa.store_partial("y", vector.at, vector.floats, isa.fma("unit", ordered[n], base)));
//$         end
//$     end
}
//$ end
