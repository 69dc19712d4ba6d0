//$ for _, pass in ipairs(passes) do

/* Hadamard transform over $(pass.radix) wires of $(pass.stride) rows, in place$(pass.groups > 1 and ", " .. pass.groups .. " times" or "").
//$ if pass.live < pass.radix * pass.stride then
   Rows from $(pass.live) on are zero: they are not read.
//$ end
//$ if pass.need < pass.radix * pass.stride then
   Rows from $(pass.need) on are not needed: they are not written.
//$ end
   v  [$(pass.groups * pass.radix * pass.stride)]$(lane_axis) */
static void $(helper)_$(pass.name)($(values_type) *v)
{
//$ local inner = pass.groups > 1 and "        " or "    "
//$ if pass.groups > 1 then
    for (size_t group = 0; group < $(pass.groups); ++group, v += $(pass.radix * pass.stride * tile)) {
//$ end
//$ for _, segment in ipairs(pass.segments) do
$(inner)for (size_t i = $(segment.from * tile); i < $(segment.to * tile); i += $(isa.lanes)) {
//$     for wire = 0, segment.live - 1 do
$(inner)    const $(isa.vector) v$(wire) = $(isa.load("v", sum("i", wire * pass.stride * tile)));
//$     end
//$     for _, node in ipairs(segment.network.operations) do
$(inner)    const $(isa.vector) $(node.name) = $(isa[node.op](node.left, node.right));
//$     end
//$     for wire, result in ipairs(segment.network.results) do
$(inner)    $(isa.store("v", sum("i", (wire - 1) * pass.stride * tile), result));
//$     end
$(inner)}
//$ end
//$ if pass.groups > 1 then
    }
//$ end
}
//$ end
