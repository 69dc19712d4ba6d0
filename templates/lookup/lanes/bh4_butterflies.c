//$ takes helper, of_tile, stage, target, step_arguments
//$ -- The butterflies of a stage, tile by tile, and what the last of them add.
    for (size_t tile = 0; tile < tiles; ++tile) {
//$ for _, pass in ipairs(stage.steps) do
        $(helper)_$(pass.name)($(listed(target .. " + tile * " .. of_tile(stage.y_step), step_arguments[pass])));
//$ end
    }
