//$ takes helper, of_tile, t, tile, residual_factor
//$ -- From dz, the gradients of a tile's projected values, to dx_tile; adds to `sums` those of the projection's weights.
//$ -- A product's blocks: from rows x_row and on of x, to rows y_row and on of y.
//$ local function rows(base, row, block, stride) return sum(base, of_tile(row * tile), times(block, of_tile(stride * tile))) end
//$ local function multiply(q, weights, at, x, x_row, y, y_row, y_stride)
//$ loop("block", 0, q.count, 1, function(block)
        $(helper)_$(q.name)($(rows(x, x_row, block, q.x_stride)), 0, $(sum(weights, at, times(block, q.depth .. " * " .. q.outputs))),
            $(rows(y, y_row, block, y_stride)), 0, 1);
//$ end, { braces = false })
//$ end
//$ if shape.kind == "dense" then
        $(helper)_turn(x_tile, $(shape.d), turned);
        $(helper)_$(t.back.outer[1].name)(dz, turned, sums);
//$ for _, q in ipairs(t.back.products) do
//$     local at = sum(names.constant("TRAIN_BACKWARD_AT"), q.offset - t.back.products[1].offset)
//$     multiply(q, "weights", at, "dz", 0, "dx_tile", q.y_row, q.y_stride)
//$ end
//$ else
//$ local repeat_words = shape.repeats > 1 and names.constant("REPEAT_WORDS") or 0
//$ local block_floats = shape.block .. " * " .. shape.block
//$ local w_floats = names.constant("TRAIN_W_FLOATS")
//$ -- What repeat `number` of `group` has of `base`, where repeats lie `each` apart.
//$ local function of_repeat(base, group, number, each) return sum(base, times(group.first, each), times(number, each)) end
//$ local function rows_of_repeat(base, group, number)
//$     return sum(base, of_tile(group.first * shape.padded * tile), times(number, of_tile(shape.padded * tile)))
//$ end
//$ -- Where the weights of product `q` of stage `number` begin among those of a repeat: forward and backward have as many.
//$ local function words_at(q, stage, number)
//$     local behind = q.offset - stage.products[1].offset
//$     if number == 1 then return behind > 0 and names.constant("W1_REST_AT") or 0 end
//$     return sum(names.constant("W" .. number .. "_AT"), behind)
//$ end
//$ for _, group in ipairs(t.back.groups) do
//$ if group.residual_rows > 0 then
//$ loop("repeat", 0, group.count, 1, function(number)
            $(helper)_add_rows(dx_tile, $(rows_of_repeat("dz", group, number)),
                $(residual_factor), $(group.residual_rows));
//$ end, { braces = false })
//$ end
//$ end
//$ -- Of each repeat its first three stages again, then all four from the last one.
//$ local inputs = { "x_tile", "a", "b", "c" }
//$ for _, group in ipairs(t.back.groups) do

//$ loop("repeat", 0, group.count, 1, function(number)
            const float *forward = $(of_repeat("weights", group, number, repeat_words));
            const float *backward = $(of_repeat("weights + " .. names.constant("TRAIN_BACKWARD_AT"), group, number, repeat_words));
            float *gradient = $(of_repeat("sums", group, number, "4 * " .. w_floats));
            float *dy4 = $(rows_of_repeat("dz", group, number));
//$ for stage = 1, 3 do
//$ local own = group.forward.stages[stage]

            /* stage $(stage) again */
//$ for _, q in ipairs(own.products) do
//$ local x_row, y_row = q.first_block * q.x_stride, q.first_block * q.outputs
//$ multiply(q, "forward", words_at(q, own, stage), inputs[stage], x_row, inputs[stage + 1], y_row, q.outputs)
//$ end
            $(helper)_$(pass.name)($(inputs[stage + 1])); //$ for _, pass in ipairs(own.passes)
//$ end
//$ local from = "dy4"
//$ for stage = 4, 1, -1 do
//$ local own, to = group.stages[stage], stage % 2 == 0 and "da" or "db"

            /* stage $(stage) backward */
            $(helper)_$(pass.name)($(from)); //$ for _, pass in ipairs(own.passes)
            $(helper)_turn($(inputs[stage]), $(own.rows), turned);
//$ for _, o in ipairs(own.outer) do
//$ local behind = o.at - (stage - 1) * shape.padded * shape.block
//$ loop("block", 0, o.count, 1, function(block)
                $(helper)_$(o.name)($(rows(from, o.y_row, block, o.y_stride)), $(sum("turned", o.x_row, times(block, o.x_stride))),
                    $(sum("gradient", times(stage - 1, w_floats), behind, times(block, block_floats))));
//$ end, { braces = false })
//$ end
//$ for _, q in ipairs(own.products) do multiply(q, "backward", words_at(q, own, stage), from, q.x_row, to, q.y_row, q.y_stride) end
//$ from = to
//$ end
            $(helper)_add_rows(dx_tile, $(from), 1.0f, $(shape.d));
//$ end, { block = true })
//$ end
//$ end
