//$ takes helper, v, calls, of, rows
//$ -- Takes `rows` rows through a linear map: rounds them, if products take them so, and multiplies by all its panels.
//$ -- Weights are converted to floats where several rows share that.
//$ local strip = v.product.unpacks and ", " .. rows .. " > 1 ? " .. of.strip .. " : NULL" or ""
    $(calls.rounds[of.map.inputs])($(of.x), $(of.x_step), $(of.inputs), $(of.inputs_step), $(rows)); //$ if of.rounded
//$ for _, product in ipairs(of.products) do
    $(helper)_multiply_$(product.name)(weights, $(of.inputs), $(of.inputs_step), $(product.y), $(product.y_step), $(rows)$(strip));
//$ end
