//$ takes helper, of_tile, tile, stage, target, words_at, integers, block_of, counter, folded, panel, step_arguments
//$ -- A stage of BH4 for tokens in the lanes, in integers, rows first: rounds all inputs of a tile, then multiplies some rows
//$ -- of all blocks and does their butterflies, while they are in L1.
//$ -- What follows `base` for the block at hand: `at`, then `step` from block to block; in the buffer `name` of rounded inputs.
//$ local function of_block(base, at, step) return sum(base, at) .. " + block * " .. step end
//$ local function rounded(p, base, name) return of_block(base, of_tile(p.rounded[name].at), of_tile(p.rounded[name].block)) end
//$ local function of_fold(p, base, name) return rounded(p, base, name) .. " + fold * " .. of_tile(p.rounded[name].fold) end
    for (size_t tile = 0; tile < tiles; ++tile) {
//$ for _, p in ipairs(stage.products) do
//$ local x = of_block(stage.source, of_tile(p.x_at), of_tile(p.x_block)) .. " + tile * " .. of_tile(stage.x_step)
//$ x = x .. " + fold * " .. of_tile(p.fold_step)
//$ local units = of_fold(p, "units", "units")
        for (size_t block = 0; block < $(p.count); ++block) {
            for (size_t fold = 0; fold < $(p.folds); ++fold) {
//$ if stage.maxima then
                $(helper)_units_of_maxima($(of_fold(p, "maxima + tile * " .. of_tile(integers.blocks * tile), "maxima")), $(units));
//$ else
                $(helper)_units_$(p.rows)($(x), $(units));
//$ end
                $(helper)_round_$(p.rows)($(x), $(units), $(of_fold(p, "integers", "integers")), $(of_fold(p, "starts", "starts")));
            }
        }
//$ end
        for (size_t row = 0; row < $(shape.block); row += $(panel)) {
//$ for _, p in ipairs(stage.products) do
//$ local block = block_of(p)
//$ if folded then
            folds.count = $(p.folds);
            folds.$(counter)s = $(block.lines);
            folds.scales = $(p.fold_gap);
//$ end
            for (size_t block = 0; block < $(p.count); ++block) {
//$ for _, part in ipairs(block.full) do
                $(helper)_outputs_$(part.outputs)($(rounded(p, "integers", "integers")),
                    $(folded and "&folds" or block.lines),
                    $(of_block("w", sum(words_at(p, stage), part.at), p.depth .. " * " .. p.outputs)) + row * $(block.depth), $(panel),
                    $(of_block("scales", p.scale_at + part.at, p.outputs)) + row,
                    $(rounded(p, "units", "units")), $(rounded(p, "starts", "starts")),
                    $(of_block(target, of_tile(p.y_at + part.at * tile), of_tile(p.y_block))) + row * $(tile)
                    + tile * $(of_tile(stage.y_step)));
//$ end
            }
//$ end
//$ for _, pass in ipairs(stage.steps) do
            $(helper)_$(pass.name)($(listed(target .. " + tile * " .. of_tile(stage.y_step), step_arguments[pass])));
//$ end
        }
    }
