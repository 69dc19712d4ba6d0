//$ takes helper, back, residual_factor
//$ -- From dz, the gradients of a tile's projected values, to dx_tile; adds to `sums` those of the projection's weights.
        $(helper)_turn(x_tile, $(shape.d), turned); //$ if shape.kind == "dense"
$(include("templates/lookup/training/block_calls.c", { calls = back.calls })) //$ if shape.kind == "dense"
//$ for _, group in ipairs(back.groups) do
//$ loop("repeat", 0, group.residual_rows > 0 and group.count or 0, 1, function(number)
            $(helper)_add_rows(dx_tile, $(group.dz(number)), $(residual_factor), $(group.residual_rows));
//$ end, { braces = false })
//$ end
//$ -- Of each repeat its first three stages again, then all four from the last one.
//$ for _, group in ipairs(back.groups) do

//$ loop("repeat", 0, group.count, 1, function(number)
            const float *forward = $(group.forward(number));
            const float *backward = $(group.backward(number));
            float *gradient = $(group.gradient(number));
            float *dy4 = $(group.dz(number));
//$ for _, stage in ipairs(group.again) do

            /* stage $(stage.number) again */
$(include("templates/lookup/training/block_calls.c", { calls = stage.calls }))
            $(helper)_$(pass.name)($(stage.to)); //$ for _, pass in ipairs(stage.passes)
//$ end
//$ for _, stage in ipairs(group.stages) do

            /* stage $(stage.number) backward */
            $(helper)_$(pass.name)($(stage.from)); //$ for _, pass in ipairs(stage.passes)
            $(helper)_turn($(stage.input), $(stage.rows), turned);
$(include("templates/lookup/training/block_calls.c", { calls = stage.calls }))
//$ end
            $(helper)_add_rows(dx_tile, $(group.dx), 1.0f, $(shape.d));
//$ end, { block = true })
//$ end
