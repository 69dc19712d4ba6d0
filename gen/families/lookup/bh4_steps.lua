-- Plans what kernels do in the stages of a BH4 projection: where a product finds its inputs and leaves its outputs, and
-- what the last butterflies of a stage do with outputs that they have in registers.
local butterfly = require "gen.families.lookup.butterfly"
local product = require "gen.families.lookup.product"

local bh4_steps = {}

-- Whether a pass can add the residual to the first `rows` rows: all of a wire's rows have one, or none.
local function takes_residual(pass, rows)
    for _, segment in ipairs(pass.segments) do
        for wire = 0, segment.need - 1 do
            local first = wire * pass.stride
            if first + segment.from < rows and first + segment.to > rows then return false end
        end
    end
    return pass.groups == 1 or rows == 0 or rows >= pass.groups * pass.radix * pass.stride
end

-- `pass` with these changes, which also adds the residual to the first `rows` rows, and bias to all.
local function with_residual(pass, rows, changes)
    changes.residual_rows = rows
    return butterfly.pass_with(pass, changes, rows > 0 and "_residual" .. rows or "_bias")
end

-- The only pass of a stage whose rows go first, as a function of 16 rows of each wire: it finds the maxima of the next
-- stage's blocks, or adds residual and bias if it can. nil: there is no such pass.
local function rows_first(v, group, stage)
    local pass = stage.passes[1]
    if not v.rows_first or not pass then return nil end
    if stage.number < 4 then return butterfly.pass_with(pass, { panel = product.panel, maxima = true }, "_maxima") end
    local rows = group.residual_rows
    if not takes_residual(pass, rows) then return butterfly.pass_with(pass, { panel = product.panel }, "_rows") end
    return with_residual(pass, rows, { panel = product.panel })
end

-- The passes of stage `stage` of `group`. With tokens in the lanes the last one finds the units for the rounding of
-- the next stage, or adds residual and bias.
local function steps_of(v, group, stage, word)
    local steps = table.move(stage.passes, 1, #stage.passes, 1, {})
    local last = steps[#steps]
    if v.layout ~= "lanes" or not last then return steps end
    local pass = rows_first(v, group, stage)
    if pass then return { pass } end
    if stage.number == 4 then
        local rows = group.residual_rows
        if takes_residual(last, rows) then
            steps[#steps] = with_residual(last, rows, {})
        end
    elseif
        word.integers
        and not word.offset
        and v.isa.lanes > 1
        and last.radix + 2 * v.vectors + 2 <= v.isa.registers
    then
        steps[#steps] = butterfly.pass_with(last, { measures = true }, "_units")
    end
    return steps
end

-- Where product `p` of a stage whose rows go first finds what was rounded: of each buffer { at, block, fold }, where
-- its first block is, and the steps from block to block and from fold to fold of a block.
local function rounded_places(p, shape, tile)
    local function places(each) return { at = p.first_block * each, block = p.folds * each, fold = each } end
    return {
        integers = places(product.lines(shape.block, shape.projection.word.rows) * tile),
        units = places(2 * tile),
        starts = places(tile),
        maxima = { at = p.first_block * tile, block = tile, fold = p.fold_step // shape.block },
    }
end

-- Adds to the projection of `v`, of `shape`, for each group
--   z_at           offset of its outputs in z, row0 the first one's number
--   after          words to the next group; 0 for the last
--   residual_rows  outputs to which a share of the input is added
--   finished       whether butterflies add residual and bias
-- for each stage
--   steps             its passes, each with `measures` or `residual_rows` if it does more
--   rows_first        whether 16 rows of all blocks come first, then their butterflies
--   maxima            whether the stage before found those of its blocks
--   measured          whether the passes before found the units of its inputs, which lie `units_at` floats on
--   inputs            how many it has of each token
--   x_step, y_step    floats from tile to tile of its inputs and outputs
-- for each product
--   x_at, x_block     offset of its first block's inputs, and from block to block; y_at, y_block likewise
--   integers_at       offset of its inputs as words of integers
--   fold_step         floats from fold to fold of its inputs
--   rounded           of a stage whose rows go first, places in the buffers of rounded inputs
-- and to the projection itself `passes`, the distinct ones; `apart`, whether units of a stage's outputs must be found
-- by themselves; `adds_residual` and `adds_bias`, whether residual and bias must be added by themselves.
function bh4_steps.add(v, shape)
    local projection, tile, word = v.projection, v.tile, shape.projection.word
    local residual, seen = shape.decay < 1, {}
    projection.passes, projection.apart = {}, false
    projection.adds_residual, projection.adds_bias = false, false
    for i, group in ipairs(projection.groups) do
        group.row0 = group.first * shape.padded
        group.z_at = group.row0 * tile
        group.after = i < #projection.groups and group.words or 0
        group.residual_rows = residual and math.min(shape.d, group.need) or 0
        local measured, maxima = false, false
        for number, stage in ipairs(group.stages) do
            local x_rows = stage.source == "x" and v.x_step or projection.rows[stage.source]
            stage.x_step, stage.y_step = x_rows * tile, projection.rows[stage.target] * tile
            stage.inputs = number == 1 and shape.d or shape.padded
            stage.unit_place = number == 1 and 0 or 1
            stage.units_at = stage.unit_place * 2 * tile
            stage.measured = measured
            projection.apart = projection.apart or number > 1 and not measured
            stage.steps = steps_of(v, group, stage, word)
            local last = stage.steps[#stage.steps]
            stage.rows_first, stage.maxima = last ~= nil and last.panel ~= nil, maxima
            maxima = last and last.maxima or false
            measured = last and last.measures or false
            group.finished = last ~= nil and last.residual_rows ~= nil
            for _, pass in ipairs(stage.steps) do
                if not seen[pass.name] then
                    seen[pass.name] = true
                    projection.passes[#projection.passes + 1] = pass
                end
            end
            for _, p in ipairs(stage.products) do
                p.x_block, p.y_block = p.x_stride * tile, p.outputs * tile
                p.x_at, p.y_at = p.first_block * p.x_block, p.first_block * p.y_block
                p.integers_at = p.first_block * product.lines(p.x_stride, word.rows) * tile
                p.fold_step = p.fold_gap * tile
                p.rounded = stage.rows_first and rounded_places(p, shape, tile) or nil
            end
        end
        if not group.finished then
            projection.adds_residual = projection.adds_residual or residual
            projection.adds_bias = projection.adds_bias or group.need > group.residual_rows
        end
    end
end

return bh4_steps
