//$ takes of_tile, bypassed, residual, helper, kernels, tile, z_rows, x_step, period
//$ -- The share of the input that bypasses the projection, and the bias, of all repeats that have them to come.
//$ local item = kernels.layout == "rows" and "token" or "tile"
//$ local vector = residual == "vector" and "weights->residual, " or ""
    /* residual and bias */
    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item)) {
//$ for _, group in ipairs(bypassed) do
//$ local many, first = group.count > 1, group.residual_rows
//$ local z = sum("z", of_tile(group.z_at)) .. " + " .. item .. " * " .. of_tile(z_rows * tile)
//$ local bias = sum("weights->projection_bias", group.row0)
//$ if many then z, bias = z .. " + repeat * " .. of_tile(period * tile), bias .. " + repeat * " .. period end
        for (size_t repeat = 0; repeat < $(group.count); ++repeat) { //$ if many
        $(helper)_add_residual($(z), x + $(item) * $(of_tile(x_step)), $(vector)$(bias), $(first)); //$ if residual
        $(helper)_add_bias($(sum(z, first * tile)), $(sum(bias, first)), $(group.need - first)); //$ if group.need > first
        } //$ if many
//$ end
    }
