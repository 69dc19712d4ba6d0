//$ takes helper, of_tile, stage, target, words_at, unpacked
//$ -- A stage of BH4 for tokens in the lanes: products of blocks, for all tiles, then the butterflies of each tile.
//$ for _, p in ipairs(stage.products) do
    for (size_t block = 0; block < $(p.count); ++block)
        $(helper)_$(p.name)($(sum(stage.source, of_tile(p.x_at))) + block * $(of_tile(p.x_block)), $(stage.x_step),
            $(sum("w", words_at(p, stage))) + block * $(p.depth) * $(p.outputs),
            $(listed(unpacked and "unpacked", sum(target, of_tile(p.y_at)))) + block * $(of_tile(p.y_block)), $(stage.y_step), tiles);
//$ end
$(include("templates/lookup/lanes/bh4_butterflies.c")) //$ if #stage.steps > 0
