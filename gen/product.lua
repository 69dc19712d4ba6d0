-- Plans the block product, the one matrix kernel of both projections: y = W x for many small blocks W.
--
-- A block has `rows` inputs and `outputs` outputs; with `folds` > 1 its input is the concatenation of `folds` blocks
-- that lie `fold_gap` rows apart. Packed weights: [block][panel of 8 outputs][folds * rows][8], the last panel of a
-- block narrower when 8 does not divide `outputs`.
local product = {}

product.panel = 8

-- blocks       { count =, rows =, outputs =, folds =, fold_gap =, x_stride = rows between the inputs of two blocks }
-- at           index of the first weight of the first block
-- source       where the tensor keeps W: { at =, block =, fold =, row =, output = } strides in elements
-- repeats      { count =, weights =, source = }: the same product again, that many elements on (optional)
-- Returns { weights =, flops =, boxes = } and the fields of `blocks`.
function product.plan(blocks, at, source, repeats)
    local panel = product.panel
    local depth = blocks.rows * blocks.folds
    local full, tail = blocks.outputs // panel, blocks.outputs % panel
    local plan = {
        count = blocks.count, rows = blocks.rows, outputs = blocks.outputs, folds = blocks.folds,
        fold_gap = blocks.fold_gap or 0, x_stride = blocks.x_stride,
        full_panels = full, tail_outputs = tail,
        at = at, block_weights = depth * blocks.outputs, weights = depth * blocks.outputs * blocks.count,
        flops = 2 * depth * blocks.outputs * blocks.count,
        boxes = {},
    }
    local function box(first_output, panels, width)
        plan.boxes[#plan.boxes + 1] = {
            from = source.at + first_output * source.output,
            to = at + first_output * depth,
            dims = {
                { count = repeats and repeats.count or 1, from = repeats and repeats.source or 0, to = repeats and repeats.weights or 0 },
                { count = blocks.count, from = source.block, to = plan.block_weights },
                { count = panels, from = panel * source.output, to = panel * depth },
                { count = blocks.folds, from = source.fold, to = blocks.rows * width },
                { count = blocks.rows, from = source.row, to = width },
                { count = width, from = source.output, to = 1 },
            },
        }
    end
    if full > 0 then box(0, full, panel) end
    if tail > 0 then box(full * panel, 1, tail) end
    return plan
end

return product
