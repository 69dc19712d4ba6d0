//$ takes helper, kernels, tile, integers, measures, tiled, adds_residual, score, hash
//$ -- A dense projection by a matrix engine, and its hash: inputs rounded and turned, then all products.
//$ local x_step = kernels.projection.x_step
//$ local given = listed("weights", adds_residual and "x")
//$ local hashed = listed("code", score.scored and "score", hash.bytes > 0 and "vertices", "tiles")
//$ local rounded = { source = "x", step = x_step, rows = shape.d, folds = 1, fold_step = 0, units_at = 0, finds_units = measures }
$(include("templates/lookup/lanes/round_tiles.c", rounded)) //$ if integers
//$ if tiled.splits then
    for (size_t tile = 0; tile < tiles; ++tile)
        for (size_t at = 0; at < $(tiled.lines * tile); at += $(32 * tile))
            for (size_t token = 0; token < $(tile); token += 16) {
                uint32_t *words = integers + tile * $(integers.pitch) + at + token;
                $(helper)_split_bytes(words, $(tile), words, $(tile));
                $(helper)_turn(words);
                $(helper)_turn(words + $(16 * tile));
            }
    $(helper)_by_tiles($(given), integers, units, z, bytes, $(hashed));
//$ elseif integers then
    for (size_t tile = 0; tile < tiles; ++tile)
        for (size_t at = 0; at < $(tiled.lines * tile); at += $(16 * tile))
            for (size_t token = 0; token < $(tile); token += 16)
                $(helper)_turn(integers + tile * $(integers.pitch) + at + token);
    $(helper)_by_tiles($(given), integers, units, starts, z, $(hashed));
//$ else
    for (size_t tile = 0; tile < tiles; ++tile)
        for (size_t k = 0; k < $(tiled.lines); k += 16)
            for (size_t token = 0; token < $(tile); token += 16)
                $(helper)_turn(x + tile * $(x_step) + k * $(2 * tile) + token,
                    halves + (tile * $(tile) + token) * $(tiled.lines) + k);
    $(helper)_by_tiles($(given), halves, z, $(hashed));
//$ end
