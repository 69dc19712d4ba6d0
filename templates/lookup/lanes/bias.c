//$ takes isa, vectors, tile, helper

/* Adds bias to rows of a tile: z[row] += bias[row]. */
static void $(helper)_add_bias(float *restrict z, const float *restrict bias, size_t rows)
{
    for (size_t row = 0; row < rows; ++row, z += $(tile)) {
        const $(isa.vector) offset = $(isa.broadcast("bias[row]"));
//$ for n = 0, vectors - 1 do
        $(isa.store("z", n * isa.lanes, isa.add(isa.load("z", n * isa.lanes), "offset")));
//$ end
    }
}
