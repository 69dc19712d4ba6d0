//$ takes isa, lanes, helper, residual

/* The share of the input that bypasses the projection, and the bias: z[row] += residual x[row] + bias[row]. */
//$ local vector = residual == "vector"
//$ if vector then
static void $(helper)_add_residual(float *restrict z, const float *restrict x,
    const float *restrict residual, const float *restrict bias, size_t rows)
//$ else
static void $(helper)_add_residual(float *restrict z, const float *restrict x, const float *restrict bias, size_t rows)
//$ end
{
//$ if lanes > 1 then
    const size_t whole = rows - rows % $(lanes);
    for (size_t row = 0; row < whole; $(advance("row", lanes))) {
        const $(isa.vector) gain = $(vector and isa.load_unaligned("residual", "row") or isa.broadcast(residual));
        const $(isa.vector) offset = $(isa.add(isa.load_unaligned("z", "row"), isa.load_unaligned("bias", "row")));
        $(isa.store_unaligned("z", "row", isa.fma("gain", isa.load_unaligned("x", "row"), "offset")));
    }
    for (size_t row = whole; row < rows; ++row)
//$ else
    for (size_t row = 0; row < rows; ++row)
//$ end
        z[row] += $(vector and "residual[row]" or residual) * x[row] + bias[row];
}
