-- Plans the block product, the one matrix kernel of both projections: y = W x for many small blocks W.
--
-- A block has `rows` inputs and `outputs` outputs; with `folds` > 1 its input is the concatenation of `folds` blocks
-- that lie `fold_gap` rows apart. Packed weights are 32-bit words, each of one weight or of those of `together` rows
-- for the same output: [block][panel of 16 outputs][depth][16], depth = folds * lines, lines = rows / together, the
-- last panel of a block narrower when 16 does not divide `outputs`: a line of words of a panel is one cache line. Rows
-- that do not fill the last word of a block, or of a fold, have zeros beside them.
local product = {}

product.panel = 16

-- Vectors of outputs of a product of few tokens held in registers.
function product.few_vectors(isa) return isa.lanes == 1 and product.panel or 4 end

-- Words that so many rows of an output take.
function product.lines(rows, together) return (rows + together - 1) // together end

-- blocks       { count =, rows =, outputs =, folds =, fold_gap =, x_stride = rows between the inputs of two blocks }
-- at           index of the first word of the first block
-- together     rows that share a word
-- source       where the tensor keeps W: { at =, block =, fold =, row =, output = } strides in elements
-- repeats      { count =, words =, source = }: the same product again, so many words and elements on (optional)
-- Returns { name = of the function that multiplies a block of these sizes, words =, panel_floats = of a panel a weight
-- each, flops =, boxes = in elements, source = } and the fields of `blocks`.
function product.plan(blocks, at, together, source, repeats)
    local panel = product.panel
    local lines = product.lines(blocks.rows, together)
    local depth = lines * blocks.folds
    local full, tail = blocks.outputs // panel, blocks.outputs % panel
    local plan = {
        name = "block_"
            .. blocks.rows
            .. "x"
            .. blocks.outputs
            .. (blocks.folds > 1 and "_folds" .. blocks.folds or ""),
        count = blocks.count,
        rows = blocks.rows,
        outputs = blocks.outputs,
        folds = blocks.folds,
        fold_gap = blocks.fold_gap or 0,
        x_stride = blocks.x_stride,
        full_panels = full,
        tail_outputs = tail,
        together = together,
        lines = lines,
        depth = depth,
        at = at,
        block_words = depth * blocks.outputs,
        words = depth * blocks.outputs * blocks.count,
        panel_floats = depth * together * math.min(panel, blocks.outputs),
        flops = 2 * blocks.rows * blocks.folds * blocks.outputs * blocks.count,
        source = source,
        boxes = {},
    }
    -- The rows that have place number `part` in their words.
    local function box(first_output, panels, width, part)
        local rows = (blocks.rows - part + together - 1) // together
        if panels == 0 or width == 0 or rows == 0 then return end
        plan.boxes[#plan.boxes + 1] = {
            from = source.at + first_output * source.output + part * source.row,
            to = (at + first_output * depth) * together + part,
            dims = {
                {
                    count = repeats and repeats.count or 1,
                    from = repeats and repeats.source or 0,
                    to = (repeats and repeats.words or 0) * together,
                },
                { count = blocks.count, from = source.block, to = plan.block_words * together },
                { count = panels, from = panel * source.output, to = panel * depth * together },
                { count = blocks.folds, from = source.fold, to = lines * together * width },
                { count = rows, from = together * source.row, to = together * width },
                { count = width, from = source.output, to = together },
            },
        }
    end
    for part = 0, together - 1 do
        box(0, full, panel, part)
        box(full * panel, 1, tail, part)
    end
    return plan
end

-- How the outputs of block `p` are held in vectors of `lanes` outputs, `vectors` at a time: a list of strips
-- { count, w_step, y_step, vectors = { {at, step, y, floats, partial} } }: the vector's line number r of words is at
-- `at + r * step`, its outputs at `y`.
function product.strips(p, lanes, vectors)
    local panel, depth = product.panel, p.depth
    local function vector(output)
        local whole = output < p.full_panels * panel
        local width = whole and panel or p.tail_outputs
        local column = whole and output % panel or output - p.full_panels * panel
        local floats = math.min(lanes, width - column)
        return {
            at = (whole and output // panel or p.full_panels) * depth * panel + column,
            step = width,
            y = output,
            floats = floats,
            partial = floats < lanes,
        }
    end
    local strips, wide = {}, vectors * lanes
    local count = p.full_panels * panel // wide
    local function strip(first, last, times)
        local list, output = {}, first
        while output < last do
            list[#list + 1] = vector(output)
            output = output + list[#list].floats
        end
        if #list > 0 then
            strips[#strips + 1] = { count = times, w_step = wide * depth, y_step = wide, vectors = list }
        end
    end
    if count > 0 then strip(0, wide, count) end
    local rest = {}
    for output = count * wide, p.outputs - 1, wide do
        rest[#rest + 1] = output
    end
    for _, first in ipairs(rest) do
        -- Weights and outputs of what follows a repeated strip are counted from its end.
        strip(first, math.min(first + wide, p.outputs), 1)
        for _, v in ipairs(strips[#strips].vectors) do
            if count > 1 then
                v.at, v.y = v.at - count * wide * depth, v.y - count * wide
            end
        end
    end
    return strips
end

return product
