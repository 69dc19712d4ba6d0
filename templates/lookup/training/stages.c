//$ takes helper, t, tile, residual_factor
//$ -- From dz, the gradients of a tile's projected values, to dx_tile; adds to `sums` those of the projection's weights.
//$ -- A product's blocks: from rows x_row and on of x, to rows y_row and on of y.
//$ local function multiply(q, weights, x, x_row, y, y_row, y_stride)
//$ loop("block", 0, q.count, 1, function(block)
//$ local function rows(base, row, stride) return sum(base, row * tile, times(block, stride * tile)) end
        $(helper)_$(q.name)($(rows(x, x_row, q.x_stride)), 0, $(sum(weights, q.offset, times(block, q.block_words))),
            $(rows(y, y_row, y_stride)), 0, 1);
//$ end, { braces = false })
//$ end
//$ if shape.kind == "dense" then
        $(helper)_turn(x_tile, $(shape.d), turned);
        $(helper)_$(t.back.outer[1].name)(dz, turned, sums);
//$ for _, q in ipairs(t.back.products) do multiply(q, "weights", "dz", 0, "dx_tile", q.y_row, q.y_stride) end
//$ else
//$ local repeat_floats, tensor = shape.padded * tile, 4 * shape.padded * shape.block
//$ for _, group in ipairs(t.back.groups) do
//$ if group.residual_rows > 0 then
//$ loop("repeat", 0, group.count, 1, function(number)
            $(helper)_add_rows(dx_tile, $(sum("dz", group.first * repeat_floats, times(number, repeat_floats))),
                $(residual_factor), $(group.residual_rows));
//$ end, { braces = false })
//$ end
//$ end
//$ -- Of each repeat its first three stages again, then all four from the last one.
//$ local inputs = { "x_tile", "a", "b", "c" }
//$ for _, group in ipairs(t.back.groups) do

//$ loop("repeat", 0, group.count, 1, function(number)
            const float *forward = $(sum("weights", group.forward.at, times(number, group.forward.words)));
            const float *backward = $(sum("weights", group.at, times(number, group.words)));
            float *gradient = $(sum("sums", group.first * tensor, times(number, tensor)));
            float *dy4 = $(sum("dz", group.first * repeat_floats, times(number, repeat_floats)));
//$ for stage = 1, 3 do
//$ local own = group.forward.stages[stage]

            /* stage $(stage) again */
//$ for _, q in ipairs(own.products) do
//$ multiply(q, "forward", inputs[stage], q.first_block * q.x_stride, inputs[stage + 1], q.first_block * q.outputs, q.outputs)
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
//$ loop("block", 0, o.count, 1, function(block)
                $(helper)_$(o.name)($(sum(from, o.y_row * tile, times(block, o.y_stride * tile))),
                    $(sum("turned", o.x_row, times(block, o.x_stride))), $(sum("gradient", o.at, times(block, o.block))));
//$ end, { braces = false })
//$ end
//$ for _, q in ipairs(own.products) do multiply(q, "backward", from, q.x_row, to, q.y_row, q.y_stride) end
//$ from = to
//$ end
            $(helper)_add_rows(dx_tile, $(from), 1.0f, $(shape.d));
//$ end, { block = true })
//$ end
//$ end
