//$ takes helper, kernels, of_tile, products, integers, measures, weights_of, unpacked
//$ -- The products of a dense projection for tokens in the lanes, of their inputs rounded to integers or as they are.
//$ local of = kernels.projection
//$ local rounded = { source = "x", step = of.x_step, rows = shape.d, folds = 1, fold_step = 0, units_at = 0, finds_units = measures }
$(include("templates/lookup/lanes/round_tiles.c", rounded)) //$ if integers
//$ if integers then
    factors.units = units;
    factors.starts = starts; //$ if integers.starts
//$ end
//$ for _, p in ipairs(products) do
//$ local y = sum("z", of_tile(p.y_at)) .. " + block * " .. of_tile(p.y_block)
    for (size_t block = 0; block < $(p.count); ++block) {
        factors.scales = $(sum("weights->" .. weights_of .. "_scales", p.scale_at)) + block * $(p.outputs); //$ if integers
        $(helper)_$(p.name)($(integers and "integers" or "x, " .. of.x_step), $(sum("w", p.at)) + block * $(p.block_words),
            $(listed(unpacked and "unpacked", integers and "&factors", y)), $(of.y_step), tiles);
    }
//$ end
