//$ takes helper, of_tile, stage, integers
//$ -- Finds the units of each token for all inputs of a stage.
    for (size_t tile = 0; tile < tiles; ++tile)
        $(helper)_units_$(stage.inputs)($(stage.source) + tile * $(of_tile(stage.x_step)),
            $(sum("units + tile * " .. of_tile(integers.units_pitch), stage.units_at)));
