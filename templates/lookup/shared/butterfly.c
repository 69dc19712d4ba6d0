//$ takes of_tile, helper, passes, values_type, residual, isa, kernels, tile, lane_axis
//$ local lanes, vectors = isa.lanes, kernels.vectors
//$ for _, pass in ipairs(passes) do
//$ local rows, vector = pass.residual_rows, residual == "vector"
//$ -- What a pass takes beside its rows, and what it gives to the function of one vector.
//$ local more, vector_arguments, vector_parameters = "", "", ""
//$ if rows then
//$     more = (rows > 0 and "const " .. values_type .. " *restrict x, " or "")
//$         .. (rows > 0 and vector and "const " .. values_type .. " *restrict residual, " or "") .. "const "
//$         .. values_type .. " *restrict bias"
//$     vector_arguments = (rows > 0 and ", x" or "") .. (rows > 0 and vector and ", residual" or "") .. ", bias"
//$     vector_parameters = more .. ", size_t row"
//$ elseif pass.measures then
//$     more = values_type .. " *restrict units"
//$     vector_parameters = isa.vector .. " *max, " .. isa.vector .. " *finite"
//$ elseif pass.maxima then
//$     more = "uint32_t *restrict maxima"
//$     vector_parameters = isa.index .. " *restrict max"
//$ end
//$ if pass.panel then more = more == "" and "size_t row" or "size_t row, " .. more end
//$ -- Inputs that are results of other wires are copied, times a one that keeps the loop a loop.
//$ local function is_copy(wire, result) return not rows and result:find("^v%d") and result ~= "v" .. wire - 1 end
//$ local function copies(segment)
//$     for wire, result in ipairs(segment.network.results) do
//$         if is_copy(wire, result) then return true end
//$     end
//$     return false
//$ end
//$ local function transform(segment, at, row)
//$     for wire = 0, segment.live - 1 do
    const $(isa.vector) v$(wire) = $(isa.load("v", sum(at, of_tile(wire * pass.stride * tile))));
//$     end
//$     for _, node in ipairs(segment.network.operations) do
    const $(isa.vector) $(node.name) = $(isa[node.op](node.left, node.right));
//$     end
//$     for wire, result in ipairs(segment.network.results) do
//$         local first = (wire - 1) * pass.stride
//$         if is_copy(wire, result) then result = isa.mul(result, "one") end
//$         if rows then
//$             result = isa.add(result, isa.broadcast("bias[" .. sum(row, first) .. "]"))
//$             if first + segment.from < rows then
//$                 result = isa.fma(isa.broadcast(vector and "residual[" .. sum(row, first) .. "]" or residual),
//$                     isa.load("x", sum(at, of_tile(first * tile))), result)
//$             end
//$         end
    $(isa.store("v", sum(at, of_tile(first * tile)), result));
//$     end
//$ end
//$ if (pass.measures or pass.panel or rows) and lanes > 1 then
//$     for _, segment in ipairs(pass.segments) do

/* One vector of the tokens, from element i of each wire's rows on. */
$(names.macro("INLINE")) void $(helper)_$(pass.name)_vector$(segment.suffix)($(values_type) *restrict v,
    size_t i$(vector_parameters == "" and "" or ", " .. vector_parameters)$(copies(segment) and ", " .. isa.vector .. " one" or ""))
{
//$         transform(segment, "i", "row")
//$         if pass.measures then
//$             local magnitudes = {}
//$             for k, result in ipairs(segment.network.results) do magnitudes[k] = isa.abs(result) end
//$             while #magnitudes > 1 do -- as a tree, so that few of them wait for each other
//$                 local pairs_of = {}
//$                 for k = 1, #magnitudes, 2 do
//$                     local a, b = magnitudes[k], magnitudes[k + 1]
//$                     pairs_of[#pairs_of + 1] = b and isa.max(a, b) or a
//$                 end
//$                 magnitudes = pairs_of
//$             end
    *max = $(isa.max("*max", magnitudes[1]));
    *finite = $(isa.fma(isa.zero(), segment.network.results[1], "*finite"));
//$         end
//$         for wire, result in ipairs(pass.maxima and segment.network.results or {}) do
//$             local max = "max[" .. wire - 1 .. "]"
    $(max) = $(isa.max_magnitude(max, result));
//$         end
}
//$     end
//$ end
//$ local rows_text = plural(pass.stride, "row") .. (pass.panel and ", " .. pass.panel .. " of each from `row` on" or "")
//$ local times_text = pass.groups > 1 and ", " .. pass.groups .. " times" or ""

/* Hadamard transform over $(pass.radix) wires of $(rows_text), in place$(times_text).
   Rows from $(pass.live) on are zero: they are not read. //$ if pass.live < pass.radix * pass.stride
   Rows from $(pass.need) on are not needed: they are not written. //$ if pass.need < pass.radix * pass.stride
//$ if pass.measures then
   Then each token's units: the first output has every wire in it, and is not finite if one is not.
   units  [unit, inverse]$(lane_axis)
//$ elseif pass.maxima then
   maxima  [$(pass.radix)]$(lane_axis) the largest magnitude of a wire's rows up to these, as bits: those of NaN and
           infinity are the largest
//$ elseif rows then
   Then $(rows > 0 and "the share of the input that bypasses the projection, and the bias" or "the bias"): v[row] +=
   $(rows > 0 and "residual x[row] + " or "")bias[row].
//$ end
   v  [$(pass.groups * pass.radix * pass.stride)]$(lane_axis) */
static void $(helper)_$(pass.name)($(values_type) *$(more ~= "" and "restrict " or "")v$(more ~= "" and ", " .. more or ""))
{
//$ local any_copies = false
//$ for _, segment in ipairs(pass.segments) do any_copies = any_copies or copies(segment) end
//$ if any_copies then
//$ local one = values_type == "float" and "$hidden(1.0f)" or "$hidden_integer(1)"
    const $(isa.vector) one = $(isa.broadcast(one)); /* else its loop is a call of memcpy */
//$ end
    $(isa.vector) max$(n) = $(isa.zero()), finite$(n) = $(isa.zero()); //$ if pass.measures for n = 0, vectors - 1
//$ local all, group = pass.radix * pass.stride, pass.groups > 1
    for (size_t group = 0; group < $(pass.groups * all); group += $(all)) { //$ if group
//$ -- Row `row`, in the group at hand; where the floats of such a row begin.
//$ local function row_of(row) return group and sum("group", row) or row end
//$ local function floats_of(row)
//$     if type(row) == "number" then return row * tile end
//$     return times(tile > 1 and row:find(" ", 1, true) and "(" .. row .. ")" or row, tile)
//$ end
//$ -- Rows from `row` on: those of a segment end where it does.
//$ local function panel_rows(each)
    const size_t end = row + $(pass.panel);
    size_t at = row;
//$     for n, segment in ipairs(pass.segments) do
    for (; at < end$(n < #pass.segments and " && at < " .. segment.to or ""); ++at) {
//$         each(segment)
    }
//$     end
//$ end
//$ if pass.maxima then
//$     local lane = nil
//$     if vectors > 1 then
    for (size_t lane = 0; lane < $(tile); $(advance("lane", lanes))) {
//$         lane = "lane"
//$     end
//$     local maxima = {}
//$     for wire = 0, pass.radix - 1 do maxima[wire + 1] = isa.load_words("maxima", sum(lane or 0, wire * tile)) end
    $(isa.index) max[$(pass.radix)];
    max[$(wire - 1)] = row > 0 ? $(before) : $(isa.index_zero()); //$ for wire, before in ipairs(maxima)
//$     panel_rows(function(segment)
        $(helper)_$(pass.name)_vector$(segment.suffix)(v, at * $(tile)$(lane and " + lane" or ""), max$(copies(segment) and ", one" or ""));
//$     end)
    $(isa.store_words("maxima", sum(lane or 0, wire * tile), "max[" .. wire .. "]")); //$ for wire = 0, pass.radix - 1
    } //$ if lane
//$ elseif pass.panel then
//$     panel_rows(function(segment)
//$         for n = 0, vectors - 1 do
        $(helper)_$(pass.name)_vector$(segment.suffix)(v,
            $(sum("at * " .. tile, n * lanes))$(vector_arguments)$(rows and ", at" or "")$(copies(segment) and ", one" or ""));
//$         end
//$     end)
//$ end
//$ for _, segment in ipairs(pass.panel and {} or pass.segments) do
//$     local from, to = segment.from, segment.to
//$     if not pass.measures and not rows then
//$         loop("i", from * tile, to * tile, isa.lanes, function(at)
//$             transform(segment, at)
//$         end, { from = floats_of(row_of(from)), to = floats_of(row_of(to)), block = #pass.segments > 1 })
//$     else
//$         loop("row", from, to, 1, function(row)
//$             if lanes == 1 then
            for (size_t i = $(floats_of(row)); i < $(floats_of(row)) + $(tile); ++i) {
//$                 transform(segment, "i", row)
            }
//$                 return
//$             end
//$             for n = 0, vectors - 1 do
//$                 local more = pass.measures and ", &max" .. n .. ", &finite" .. n or vector_arguments .. ", " .. row
            $(helper)_$(pass.name)_vector$(segment.suffix)(v,
                $(sum(floats_of(row), n * lanes))$(more)$(copies(segment) and ", one" or ""));
//$             end
//$         end, { from = row_of(from), to = row_of(to), braces = lanes > 1 and vectors > 1 })
//$     end
//$ end
    } //$ if group
    $(helper)_set_units(max$(n), finite$(n), $(sum("units", n * lanes))); //$ if pass.measures for n = 0, vectors - 1
}
//$ end
