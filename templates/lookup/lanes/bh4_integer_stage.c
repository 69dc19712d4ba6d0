//$ takes helper, of_tile, stage, target, words_at, integers, measures, rows_first
//$ -- A stage of BH4 for tokens in the lanes, in integers: rounds the inputs of a block of all tiles, then multiplies it.
$(include("templates/lookup/lanes/find_units.c")) //$ if measures and stage.number > 1 and not stage.measured
//$ local units_at = measures and stage.units_at or 0
    factors.units = $(sum("units", units_at)); //$ if stage.number == 1 or measures
    factors.starts = starts; //$ if integers.starts and stage.number == 1
//$ for _, p in ipairs(stage.products) do
    for (size_t block = 0; block < $(p.count); ++block) {
//$ local x = sum(stage.source, of_tile(p.x_at)) .. " + block * " .. of_tile(p.x_block)
//$ local rounded = { source = x, step = stage.x_step, rows = p.rows, folds = p.folds, fold_step = p.fold_step }
//$ rounded.units_at, rounded.finds_units = units_at, rows_first
$(include("templates/lookup/lanes/round_tiles.c", rounded))
        factors.scales = $(sum("scales", p.scale_at)) + block * $(p.outputs);
        $(helper)_$(p.name)(integers,
            $(sum("w", words_at(p, stage))) + block * $(p.depth) * $(p.outputs), &factors,
            $(sum(target, of_tile(p.y_at))) + block * $(of_tile(p.y_block)), $(stage.y_step), tiles);
    }
//$ end
$(include("templates/lookup/lanes/bh4_butterflies.c")) //$ if #stage.steps > 0
