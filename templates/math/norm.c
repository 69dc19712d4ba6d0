//$ takes lanes, helper, float_sums, name, layernorm, factors, more, rows, width, eps
//$ -- A function that norms rows, with sums that suit the instruction set.
//$ -- factors: it only gives what rows are multiplied by, a number each.
//$ local parameters, what = "const float *x, size_t x_step, ", "1 / sqrt(" .. (layernorm and "variance" or "mean square") .. " + eps), row by row."
//$ if factors then
//$     parameters = parameters .. "float *restrict y, "
//$ else
//$     parameters = parameters .. "const float *restrict gain, " .. (layernorm and "const float *restrict offset, " or "") .. "float *y, size_t y_step, "
//$     what = (layernorm and "(x - mean) / sqrt(variance + eps) gain + offset" or "x / sqrt(mean square + eps) gain") .. ", row by row; y may be x."
//$ end
//$ local sums = float_sums and "floats" or lanes > 1 and "lanes" or "doubles"
$(include("templates/math/norm_in_" .. sums .. ".c", { helper = helper, name = name, layernorm = layernorm, factors = factors, parameters = parameters, what = what, more = more, rows = rows, width = width, eps = eps }))
