//$ takes isa, helper, name, layernorm, factors, parameters, what, more, rows, width, eps
//$ -- more: parameters behind the steps; rows, eps: names of parameters, or numbers; width: a number or a name.
//$ local known = ("" .. width):find "%D" == nil
//$ local share = known and "* " .. ("%.17g"):format(1 / width) or "/ (double) " .. width

/* $(what) */
static void $(helper)_$(name)($(parameters)$(more))
{
    for (size_t row = 0; row < $(rows); ++row, x += x_step, $(factors and "++y" or "y += y_step")) {
        double square = 0.0;
//$ if layernorm then
        double mean = 0.0;
        for (size_t i = 0; i < $(width); ++i)
            mean += (double) x[i];
        mean = mean $(share);
        for (size_t i = 0; i < $(width); ++i)
            square += ((double) x[i] - mean) * ((double) x[i] - mean);
//$ else
        for (size_t i = 0; i < $(width); ++i)
            square += (double) x[i] * (double) x[i];
//$ end
        const float variance = (float) (square $(share)) + $(eps);
//$ local factor = first_lane("        ", "factor", isa.reciprocal_root(isa.broadcast("variance")))
//$ if factors then
        *y = $(factor);
//$ else
        for (size_t i = 0; i < $(width); ++i)
//$ if layernorm then
            y[i] = (float) ((double) x[i] - mean) * $(factor) * gain[i] + offset[i];
//$ else
            y[i] = x[i] * $(factor) * gain[i];
//$ end
//$ end
    }
}
