//$ takes lanes, helper, float_sums, name, layernorm, factors, gains, width, eps
//$ -- A function `name` that norms rows of `width` floats, with sums that suit the instruction set.
//$ -- factors: it only gives what rows are multiplied by, a number each; gains: an RMSNorm has some.
//$ local row = layernorm and "(x - mean) / sqrt(variance + eps) gain + offset" or "x / sqrt(mean square + eps)"
//$ if gains and not layernorm then row = row .. " gain" end
//$ if factors then row = "1 / sqrt(" .. (layernorm and "variance" or "mean square") .. " + eps)" end
//$ local sums = float_sums and "floats" or lanes > 1 and width >= lanes and "lanes" or "doubles"
//$ local body = include("templates/math/norm_in_" .. sums .. ".c")

/* $(row), row by row of $(width)$(factors and "." or "; y may be x.") eps is $(eps).
//$ if sums == "floats" then
   No double, which such a CPU computes in software: the sums of
//$ if layernorm then
   differences from a rounded mean and of their squares are off by 2^-23 of their magnitudes, and the former gives
   what rounding left out of the mean. */
//$ else
   squares are off by 2^-23. */
//$ end
//$ elseif sums == "lanes" then
   Each lane adds up elements of its own, in
   float32$(layernorm and "; differences from a rounded mean give what rounding left out of it." or ".") */
//$ else
   Sums are in float64. */
//$ end
//$ if factors then
static void $(helper)_$(name)(const float *x, size_t x_step, float *restrict y, size_t rows)
{
    for (size_t row = 0; row < rows; ++row, x += x_step, ++y) {
//$ else
//$ local parameters = listed(
//$     "const float *x, size_t x_step",
//$     gains and "const float *restrict gain",
//$     layernorm and "const float *restrict offset",
//$     "float *y, size_t y_step, size_t rows"
//$ )
static void $(helper)_$(name)($(parameters))
{
    for (size_t row = 0; row < rows; ++row, x += x_step, y += y_step) {
//$ end
$(body)
    }
}
