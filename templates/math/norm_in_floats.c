//$ takes isa, helper, name, layernorm, factors, parameters, what, more, rows, width, eps
//$ local add = once("templates/math/sum.c") .. "_add"
//$ -- more: parameters behind the steps; rows, width, eps: names of parameters, or numbers.

/* $(what) No double, which such a CPU computes in software: the sums of
   $(layernorm and "differences from a rounded mean and of their squares are off by 2^-23 of their magnitudes, and the former gives what rounding left out of the mean." or "squares are off by 2^-23.") */
static void $(helper)_$(name)($(parameters)$(more))
{
    for (size_t row = 0; row < $(rows); ++row, x += x_step, $(factors and "++y" or "y += y_step")) {
        float squares = 0.0f, squares_lost = 0.0f;
//$ if layernorm then
        float mean = 0.0f, rests = 0.0f, rests_lost = 0.0f;
        for (size_t i = 0; i < $(width); ++i)
            mean += x[i];
        mean /= (float) $(width);
        for (size_t i = 0; i < $(width); ++i) {
            const float rest = x[i] - mean;
            rests = $(add)(rests, rest, &rests_lost);
            squares = $(add)(squares, rest * rest, &squares_lost);
        }
        const float shift = rests / (float) $(width);
        const float variance = squares / (float) $(width) - shift * shift + $(eps);
//$ else
        for (size_t i = 0; i < $(width); ++i)
            squares = $(add)(squares, x[i] * x[i], &squares_lost);
        const float variance = squares / (float) $(width) + $(eps);
//$ end
//$ local factor = first_lane("        ", "factor", isa.reciprocal_root(isa.broadcast("variance")))
//$ if factors then
        *y = $(factor);
//$ else
        for (size_t i = 0; i < $(width); ++i)
//$ if layernorm then
            y[i] = (x[i] - mean - shift) * $(factor) * gain[i] + offset[i];
//$ else
            y[i] = x[i] * $(factor) * gain[i];
//$ end
//$ end
    }
}
