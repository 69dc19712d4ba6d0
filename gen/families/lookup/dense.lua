-- Plans the dense projection z = x Wᵀ + bias, W [h*tau][d]: one block product whose blocks all read the whole input.
-- That of BH4 multiplied out adds a share of the input to z, once a repeat.
local product = require "gen.families.lookup.product"

local dense = {}

-- shape: d, bits, projection. Returns { products, words, panel_floats (of the largest panel), max_lines (of words of a
-- block), max_folds (of a block), boxes, rows = {x, z}, flops }.
function dense.plan(shape)
    local plan = {
        products = {},
        words = 0,
        panel_floats = 0,
        max_lines = 0,
        max_folds = 1,
        boxes = {},
        flops = 0,
        rows = { x = shape.d, z = shape.bits },
    }
    local function add(count, outputs, first_output)
        if count == 0 or outputs == 0 then return end
        local source = { at = first_output * shape.d, block = outputs * shape.d, fold = 0, row = 1, output = shape.d }
        local p = product.plan(
            { count = count, rows = shape.d, outputs = outputs, folds = 1, x_stride = 0 },
            plan.words,
            shape.projection.word.rows,
            source
        )
        p.first_output, p.scale_at = first_output, first_output
        plan.products[#plan.products + 1] = p
        plan.words = plan.words + p.words
        plan.flops = plan.flops + p.flops
        plan.panel_floats = math.max(plan.panel_floats, p.panel_floats)
        plan.max_lines = math.max(plan.max_lines, p.depth)
        for _, box in ipairs(p.boxes) do
            plan.boxes[#plan.boxes + 1] = box
        end
    end
    local blocks = shape.bits // product.panel
    add(blocks, product.panel, 0)
    add(1, shape.bits % product.panel, blocks * product.panel)
    return plan
end

-- How a matrix engine of `isa` multiplies for many tokens, nil: it does not: { word, splits }. Tiles have 16 words of
-- inputs, and there are two panels at a time. In bf16 it rounds inputs, too, as a projection multiplied out may.
-- splits: numbers of 16 bits are two bytes, in tiles of their own, and the sums of four products, 65536 times that of
-- upper bytes and so on, are those of the numbers to the bit, as they are below 2^31 together.
function dense.by_tiles(shape, isa)
    local type = shape.projection
    local splits = type.word.integers and not type.word.offset
    local word = type.word.integers and "tile_dot_i8" or type.name == "bf16" and shape.of and "tile_dot_bf16"
    local fits = shape.d % (splits and 64 or 16 * type.word.rows) == 0 and shape.bits > product.panel
    return word and isa[word] and fits and { word = word, splits = splits } or nil
end

-- What instruction sets are asked for (isa_list.with_types) where BH4 is multiplied out in the type `projection`; nil:
-- no matrix engine is faster.
function dense.needs(projection)
    local tiles = projection.word.offset and "tile_dot_i8" or projection.name == "bf16" and "tile_dot_bf16"
    return tiles and { name = "dense " .. projection.name, tiles = tiles } or nil
end

-- Whether many tokens of `shape` are projected faster by the matrix that BH4 is multiplied out to. Beyond 2048 inputs
-- BH4 has so much fewer operations that a matrix engine does not make up for it, nor for four products of bytes each.
function dense.pays(shape, isa)
    local tiled = shape.multiplied and dense.by_tiles(shape.multiplied, isa)
    return tiled ~= nil and not tiled.splits and shape.d <= 2048
end

-- Adds to the products of the projection of `v` the offset of their first block's outputs, `y_at`, and floats from
-- block to block, `y_block`; to the projection x_step and y_step, floats from tile to tile, and where a share of the
-- input is added `groups` of repeats, as those of BH4. A matrix engine has one product, `tiled`, in the place of all:
--   word, splits                of by_tiles
--   panels, lines, panel_words  of all outputs; of words in a panel, and these
--   width                       outputs of the last panel, which is as wide as the others where the engine writes it
function dense.add(v, shape)
    local projection = v.projection
    for _, p in ipairs(projection.products) do
        p.y_at, p.y_block = p.first_output * v.tile, p.outputs * v.tile
    end
    local tiled = v.layout == "lanes" and dense.by_tiles(shape, v.isa)
    if tiled then
        local panels, lines = (shape.bits + product.panel - 1) // product.panel, projection.products[1].lines
        projection.tiled = {
            word = tiled.word,
            splits = tiled.splits,
            panels = panels,
            lines = lines,
            panel_words = lines * product.panel,
            width = shape.bits - (panels - 1) * product.panel,
        }
        projection.products, projection.rows.z = {}, panels * product.panel
    end
    projection.x_step, projection.y_step = v.x_step * v.tile, projection.rows.z * v.tile
    projection.groups, projection.adds_residual, projection.adds_bias = {}, false, true
    if not (shape.of and shape.decay < 1) then return end
    projection.adds_residual, projection.adds_bias = true, false
    local period = shape.of.padded
    local function add(first, count, need)
        if count == 0 or need == 0 then return end
        local row0, residual_rows = first * period, math.min(shape.d, need)
        table.insert(projection.groups, {
            count = count,
            need = need,
            row0 = row0,
            z_at = row0 * v.tile,
            residual_rows = residual_rows,
        })
        projection.adds_bias = projection.adds_bias or need > residual_rows
    end
    add(0, shape.bits // period, period)
    add(shape.bits // period, 1, shape.bits % period)
end

return dense
