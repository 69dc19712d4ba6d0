//$ takes helper, of_tile, tile, integers, source, step, rows, folds, fold_step, units_at, finds_units
//$ -- Rounds inputs of all tiles to integers, fold after fold, in units that it finds or that are known. Where there are
//$ -- starts each fold has a unit and a start, otherwise each token has a unit.
//$ local x = source .. " + tile * " .. of_tile(step) .. " + fold * " .. of_tile(fold_step)
//$ local words = "integers + tile * " .. of_tile(integers.pitch) .. " + fold * " .. of_tile(integers.lines_of(rows) * tile)
//$ local units = sum("units + tile * " .. of_tile(integers.units_pitch), units_at)
//$ if integers.starts then units = units .. " + fold * " .. of_tile(2 * tile) end
//$ local starts = integers.starts and "starts + tile * " .. of_tile(integers.blocks * tile) .. " + fold * " .. tile
    for (size_t tile = 0; tile < tiles; ++tile) {
        for (size_t fold = 0; fold < $(folds); ++fold) {
            $(helper)_units_$(rows)($(x), $(units)); //$ if finds_units
            $(helper)_round_$(rows)($(listed(x, units, words, starts)));
        }
    }
