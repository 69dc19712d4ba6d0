//$ takes helper, kernels, products, counted_blocks, integers, weights_of
//$ -- The products of a dense projection for tokens in rows, of all their inputs rounded to integers or as they are.
//$ local of = kernels.projection
//$ if integers then
$(include("templates/lookup/rows/round_tokens.c", { source = "x", x_step = of.x_step, inputs = shape.d }))
    factors.units = units;
    factors.starts = starts; //$ if integers.starts
//$ end
//$ for _, p in ipairs(products) do
    factors.scales = $(sum("weights->" .. weights_of .. "_scales", p.scale_at)); //$ if integers
    $(helper)_$(p.name)($(integers and "integers, " .. integers.pitch or "x, " .. of.x_step), $(sum("w", p.at)),
        $(listed(integers and "&factors", sum("z", p.y_at), of.y_step, "tokens", counted_blocks(p))));
//$ end
