-- Plans the block product, the one matrix kernel of both projections: y = W x for many small blocks W.
--
-- A block has `rows` inputs and `outputs` outputs; with `folds` > 1 its input is the concatenation of `folds` blocks
-- that lie `fold_gap` rows apart. Packed weights: [block][panel of 16 outputs][folds * rows][16], the last panel
-- of a block narrower when 16 does not divide `outputs`: a row of a panel is one cache line.
local product = {}

product.panel = 16

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

-- How the outputs of block `p` are held in vectors of `lanes` outputs, `vectors` at a time: a list of strips
-- { count, w_step, y_step, vectors = { {at, step, y, floats, partial} } }: the vector's weights of row r are at
-- `at + r * step`, its outputs at `y`.
function product.strips(p, lanes, vectors)
    local panel, depth = product.panel, p.rows * p.folds
    local function vector(output)
        local whole = output < p.full_panels * panel
        local width = whole and panel or p.tail_outputs
        local column = whole and output % panel or output - p.full_panels * panel
        local floats = math.min(lanes, width - column)
        return { at = (whole and output // panel or p.full_panels) * depth * panel + column, step = width, y = output,
            floats = floats, partial = floats < lanes }
    end
    local strips, wide = {}, vectors * lanes
    local count = p.full_panels * panel // wide
    local function strip(first, last, times)
        local list, output = {}, first
        while output < last do
            list[#list + 1] = vector(output)
            output = output + list[#list].floats
        end
        if #list > 0 then strips[#strips + 1] = { count = times, w_step = wide * depth, y_step = wide, vectors = list } end
    end
    if count > 0 then strip(0, wide, count) end
    local rest = {}
    for output = count * wide, p.outputs - 1, wide do rest[#rest + 1] = output end
    for _, first in ipairs(rest) do
        -- Weights and outputs of what follows a repeated strip are counted from its end.
        strip(first, math.min(first + wide, p.outputs), 1)
        for _, v in ipairs(strips[#strips].vectors) do
            if count > 1 then v.at, v.y = v.at - count * wide * depth, v.y - count * wide end
        end
    end
    return strips
end

return product
