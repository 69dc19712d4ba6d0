//$ takes isa, lanes, helper

/* z[row] += bias[row]. */
static void $(helper)_add_bias(float *restrict z, const float *restrict bias, size_t rows)
{
//$ if lanes > 1 then
    const size_t whole = rows - rows % $(lanes);
    for (size_t row = 0; row < whole; $(advance("row", lanes)))
        $(isa.store_unaligned("z", "row", isa.add(isa.load_unaligned("z", "row"), isa.load_unaligned("bias", "row"))));
    for (size_t row = whole; row < rows; ++row)
//$ else
    for (size_t row = 0; row < rows; ++row)
//$ end
        z[row] += bias[row];
}
