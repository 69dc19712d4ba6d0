//$ takes isa, vectors, tile, helper, residual

/* The share of the input that bypasses the projection, and the bias: z[row] += residual x[row] + bias[row]. */
//$ if residual == "vector" then
static void $(helper)_add_residual(float *restrict z, const float *restrict x,
    const float *restrict residual, const float *restrict bias, size_t rows)
//$ else
static void $(helper)_add_residual(float *restrict z, const float *restrict x, const float *restrict bias, size_t rows)
//$ end
{
    for (size_t row = 0; row < rows; ++row, z += $(tile), x += $(tile)) {
        const $(isa.vector) gain = $(isa.broadcast(residual == "vector" and "residual[row]" or residual));
        const $(isa.vector) offset = $(isa.broadcast("bias[row]"));
//$ for n = 0, vectors - 1 do
        const $(isa.vector) z$(n) = $(isa.add(isa.load("z", n * isa.lanes), "offset"));
        $(isa.store("z", n * isa.lanes, isa.fma("gain", isa.load("x", n * isa.lanes), "z" .. n)));
//$ end
    }
}
