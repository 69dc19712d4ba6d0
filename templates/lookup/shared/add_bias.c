//$ takes isa, lanes, kernels, tile, vectors, helper, residual, bypass, added_rows
//$ -- The function that adds bias to z and, if `bypass`, the share of the input that bypasses the projection.
//$ local by_tile, vector = kernels.layout == "lanes", bypass and residual == "vector"
//$ local formula = bypass and "z[row] += residual x[row] + bias[row]" or "z[row] += bias[row]"
//$ local function load(name) return isa.load_unaligned(name, "row") end
//$ local whole_vectors = true -- whether no call has rows left over
//$ for _, rows in ipairs(added_rows[bypass and "residual" or "bias"]) do whole_vectors = whole_vectors and rows % lanes == 0 end
//$ local name, what, inputs = "bias", by_tile and "Adds bias to rows of a tile: " or "", ""
//$ if bypass then
//$     name, what = "residual", "The share of the input that bypasses the projection, and the bias: "
//$     inputs = "const float *restrict x, " .. (vector and "const float *restrict residual, " or "")
//$ end

/* $(what)$(formula). */
static void $(helper)_add_$(name)(float *restrict z, $(inputs)const float *restrict bias, size_t rows)
{
//$ if by_tile then
    for (size_t row = 0; row < rows; ++row, z += $(tile)$(bypass and ", x += " .. tile or "")) {
        const $(isa.vector) gain = $(isa.broadcast(vector and "residual[row]" or residual)); //$ if bypass
        const $(isa.vector) offset = $(isa.broadcast("bias[row]"));
//$     for n = 0, vectors - 1 do
//$         local at, sums = n * isa.lanes, isa.add(isa.load("z", n * isa.lanes), "offset")
//$         if bypass then
        const $(isa.vector) z$(n) = $(sums);
        $(isa.store("z", at, isa.fma("gain", isa.load("x", at), "z" .. n)));
//$         else
        $(isa.store("z", at, sums));
//$         end
//$     end
    }
//$ else
//$     if lanes > 1 then
    const size_t whole = rows - rows % $(lanes); //$ if not whole_vectors
    for (size_t row = 0; row < $(whole_vectors and "rows" or "whole"); $(advance("row", lanes))) {
//$         if bypass then
        const $(isa.vector) gain = $(vector and load("residual") or isa.broadcast(residual));
        const $(isa.vector) offset = $(isa.add(load("z"), load("bias")));
        $(isa.store_unaligned("z", "row", isa.fma("gain", load("x"), "offset")));
//$         else
        $(isa.store_unaligned("z", "row", isa.add(load("z"), load("bias"))));
//$         end
    }
//$     end
//$     if lanes == 1 or not whole_vectors then
    for (size_t row = $(lanes > 1 and "whole" or "0"); row < rows; ++row)
        z[row] += $(bypass and (vector and "residual[row]" or residual) .. " * x[row] + " or "")bias[row];
//$     end
//$ end
}
