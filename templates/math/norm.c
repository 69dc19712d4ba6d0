//$ takes lanes, float_sums, name, layernorm, more, rows, width, eps
//$ -- A function that norms rows, with sums that suit the instruction set. Those of floats take what templates/math/sum.c
//$ -- prints, those of lanes templates/math/total.c.
//$ local sums = float_sums and "floats" or lanes > 1 and "lanes" or "doubles"
$(include("templates/math/norm_in_" .. sums .. ".c", { name = name, layernorm = layernorm, more = more, rows = rows, width = width, eps = eps }))
