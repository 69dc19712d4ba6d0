//$ takes of_tile, groups, residual, helper, kernels, tile, z_rows, x_step, period
//$ -- The share of the input that bypasses the projection, and the bias, of all repeats that have them to come.
//$ local item = kernels.layout == "rows" and "token" or "tile"
    /* residual and bias */
    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item)) {
//$ for _, group in ipairs(groups) do
//$ if not group.finished then
//$ local z_at = sum("z", of_tile(group.z_at)) .. " + " .. item .. " * " .. of_tile(z_rows * tile)
//$ local bias_at = sum("weights->projection_bias", group.row0)
//$ if group.count > 1 then
//$     z_at = z_at .. " + repeat * " .. of_tile(period * tile)
//$     bias_at = bias_at .. " + repeat * " .. period
        for (size_t repeat = 0; repeat < $(group.count); ++repeat) {
//$ end
//$ local first = group.residual_rows
//$ if residual then
//$     local vector = residual == "vector" and "weights->residual, " or ""
        $(helper)_add_residual($(z_at), x + $(item) * $(of_tile(x_step)), $(vector)$(bias_at), $(first));
//$ end
//$ if group.need > first then
        $(helper)_add_bias($(sum(z_at, first * tile)), $(sum(bias_at, first)), $(group.need - first));
//$ end
        } //$ if group.count > 1
//$ end
//$ end
    }
