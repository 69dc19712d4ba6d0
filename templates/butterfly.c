//$ for _, pass in ipairs(passes) do
//$ local residual, vector = pass.residual, pass.residual and pass.residual.gain == "vector"

/* Hadamard transform over $(pass.radix) wires of $(pass.stride) rows, in place$(pass.groups > 1 and ", " .. pass.groups .. " times" or "").
//$ if pass.live < pass.radix * pass.stride then
   Rows from $(pass.live) on are zero: they are not read.
//$ end
//$ if pass.need < pass.radix * pass.stride then
   Rows from $(pass.need) on are not needed: they are not written.
//$ end
//$ if pass.measures then
   Then each token's units: the first output has every wire in it, and is not finite if one is not.
   units  [unit, inverse]$(lane_axis)
//$ elseif residual then
   Then $(residual.rows > 0 and "the share of the input that bypasses the projection, and the bias: v[row] += residual x[row] + bias[row]" or "the bias: v[row] += bias[row]").
//$ end
   v  [$(pass.groups * pass.radix * pass.stride)]$(lane_axis) */
//$ if pass.measures then
static void $(helper)_$(pass.name)($(values_type) *restrict v, $(values_type) *restrict units)
//$ elseif residual then
static void $(helper)_$(pass.name)($(values_type) *restrict v, $(residual.rows > 0 and "const " .. values_type .. " *restrict x, " or "")$(vector and "const " .. values_type .. " *restrict residual, " or "")const $(values_type) *restrict bias)
//$ else
static void $(helper)_$(pass.name)($(values_type) *v)
//$ end
{
//$ if pass.measures then
//$     for n = 0, vectors - 1 do
    $(isa.vector) most$(n) = $(isa.zero()), finite$(n) = $(isa.zero());
//$     end
//$ end
//$ local inner = pass.groups > 1 and "        " or "    "
//$ if pass.groups > 1 then
//$     local steps = "v += " .. pass.radix * pass.stride * tile
//$     if residual then
//$         steps = steps .. (residual.rows > 0 and ", x += " .. pass.radix * pass.stride * tile or "") .. (vector and ", residual += " .. pass.radix * pass.stride or "") .. ", bias += " .. pass.radix * pass.stride
//$     end
    for (size_t group = 0; group < $(pass.groups); ++group, $(steps)) {
//$ end
//$ local function transform(i, segment)
//$     for wire = 0, segment.live - 1 do
$(i)const $(isa.vector) v$(wire) = $(isa.load("v", sum("i", wire * pass.stride * tile)));
//$     end
//$     for _, node in ipairs(segment.network.operations) do
$(i)const $(isa.vector) $(node.name) = $(isa[node.op](node.left, node.right));
//$     end
//$     for wire, result in ipairs(segment.network.results) do
//$         local first = (wire - 1) * pass.stride
//$         if residual then
//$             result = isa.add(result, isa.broadcast("bias[" .. sum("row", first) .. "]"))
//$             if first + segment.from < residual.rows then
//$                 result = isa.fma(isa.broadcast(vector and "residual[" .. sum("row", first) .. "]" or residual.gain), isa.load("x", sum("i", first * tile)), result)
//$             end
//$         end
$(i)$(isa.store("v", sum("i", first * tile), result));
//$     end
//$ end
//$ for _, segment in ipairs(pass.segments) do
//$     if not pass.measures and not residual then
$(inner)for (size_t i = $(segment.from * tile); i < $(segment.to * tile); i += $(isa.lanes)) {
//$         transform(inner .. "    ", segment)
$(inner)}
//$     else
$(inner)for (size_t row = $(segment.from); row < $(segment.to); ++row) {
//$         if lanes == 1 then
$(inner)    for (size_t i = row * $(tile); i < row * $(tile) + $(tile); ++i) {
//$             transform(inner .. "        ", segment)
$(inner)    }
//$         else
//$             for n = 0, vectors - 1 do
$(inner)    {
$(inner)        const size_t i = $(sum("row * " .. tile, n * lanes));
//$                 transform(inner .. "        ", segment)
//$                 if pass.measures then
//$                     local sizes = {}
//$                     for k, result in ipairs(segment.network.results) do sizes[k] = isa.abs(result) end
//$                     while #sizes > 1 do -- as a tree, so that few of them wait for each other
//$                         local pairs_of = {}
//$                         for k = 1, #sizes, 2 do pairs_of[#pairs_of + 1] = sizes[k + 1] and isa.max(sizes[k], sizes[k + 1]) or sizes[k] end
//$                         sizes = pairs_of
//$                     end
$(inner)        most$(n) = $(isa.max("most" .. n, sizes[1]));
$(inner)        finite$(n) = $(isa.fma(isa.zero(), segment.network.results[1], "finite" .. n));
//$                 end
$(inner)    }
//$             end
//$         end
$(inner)}
//$     end
//$ end
//$ if pass.groups > 1 then
    }
//$ end
//$ if pass.measures then
//$     for n = 0, vectors - 1 do
    $(helper)_set_units(most$(n), finite$(n), $(sum("units", n * lanes)));
//$     end
//$ end
}
//$ end
