-- Plans a projection in integers: blocks of products, their places of multipliers, and the packer's steps.
local bh4 = require "gen.families.lookup.bh4"
local product = require "gen.families.lookup.product"

local projection = {}

local function dense(inputs, outputs)
    local p = product.plan(
        { count = 1, rows = inputs, outputs = outputs, folds = 1, x_stride = 0 },
        0,
        1,
        { at = 0, block = 0, fold = 0, row = 1, output = inputs }
    )
    p.first_block = 0
    return {
        groups = {
            {
                first = 0,
                count = 1,
                words = p.words,
                at = 0,
                need = outputs,
                stages = {
                    { number = 4, source = "x", target = "z", products = { p }, passes = {}, outputs = outputs },
                },
            },
        },
        words = p.words,
        flops = p.flops,
        rows = { z = outputs },
    }
end

-- Gives every product the places of its multipliers, one an output, and every stage its blocks. Returns the number of
-- multipliers.
local function place_multipliers(shape, own)
    local at = 0
    for _, group in ipairs(own.groups) do
        group.multiplier_at, group.multipliers = at, 0
        for _, stage in ipairs(group.stages) do
            stage.last = stage.number == 4
            stage.rows = stage.last and group.need or shape.padded
            -- The transform over whole blocks: `blocks` of `width` rows.
            stage.blocks = shape.kind == "bh4" and math.max(1, stage.outputs // shape.block) or 1
            stage.width = stage.outputs // stage.blocks
            for _, p in ipairs(stage.products) do
                p.target_at = p.first_block * p.outputs
                p.multiplier_at = group.multipliers
                group.multipliers = group.multipliers + p.count * p.outputs
            end
        end
        at = at + group.count * group.multipliers
    end
    return at
end

-- Places in the section `shifts`; those of three stages of every repeat follow.
projection.shifts = { "z", "residual", "score", "y" }

-- The stages of all repeats one after the other, as the packer walks through them.
local function steps_of(shape, own)
    local list = {}
    for _, group in ipairs(own.groups) do
        for r = 0, group.count - 1 do
            local repeat_number = group.first + r
            for _, stage in ipairs(group.stages) do
                local step = {
                    first = stage.source == "x",
                    last = stage.last,
                    blocks = stage.blocks,
                    width = stage.width,
                    rows = stage.rows,
                    z_at = repeat_number * shape.padded,
                    shift_at = #projection.shifts + 3 * repeat_number + stage.number - 1,
                    products = {},
                }
                if shape.kind == "dense" then step.z_at = 0 end
                for i, p in ipairs(stage.products) do
                    step.products[i] = {
                        count = p.count,
                        rows = p.rows,
                        outputs = p.outputs,
                        folds = p.folds,
                        fold_gap = p.fold_gap,
                        x_at = p.first_block * p.x_stride,
                        x_stride = p.x_stride,
                        target_at = p.target_at,
                        weight_at = p.at + r * group.words,
                        multiplier_at = group.multiplier_at + r * group.multipliers + p.multiplier_at,
                        from = p.source.at + r * 4 * shape.padded * shape.block,
                        block = p.source.block,
                        fold = p.source.fold,
                        row = p.source.row,
                        output = p.source.output,
                    }
                end
                list[#list + 1] = step
            end
        end
    end
    return list
end

local together = 4 -- outputs that share their inputs

-- Outputs of a block in strips that share their inputs: { {at, count, together} }.
local function strips_of(outputs)
    local list, at = {}, 0
    while at < outputs do
        local n = outputs - at >= together and together or 1
        local count = (outputs - at) // n
        list[#list + 1] = { at = at, count = count, together = n }
        at = at + count * n
    end
    return list
end

-- What kernels are made of: names every product's block, and lists the distinct blocks and passes of butterflies, and
-- the offsets { name, value, doc } of what they read.
local function name_kernels(own)
    own.blocks, own.passes, own.constants = {}, {}, {}
    local seen = {}
    local function constant(name, value, doc)
        if value > 0 then table.insert(own.constants, { name = name, value = value, doc = doc }) end
    end
    for i, group in ipairs(own.groups) do
        group.after = i < #own.groups
        group.name = i > 1 and "REST" or "REPEAT"
        if group.count > 1 or group.after then
            local of = group.count > 1 and "of each repeat" or "of the repeat"
            constant(group.name .. "_WEIGHTS", group.words, "weights " .. of)
            constant(group.name .. "_MULTIPLIERS", group.multipliers, "multipliers " .. of)
        end
        for _, stage in ipairs(group.stages) do
            for number, p in ipairs(stage.products) do
                p.name = "block_" .. p.rows .. "x" .. p.outputs .. (p.folds > 1 and "_folds" .. p.folds or "")
                p.offset = p.at - group.at -- of its weights in those of a repeat
                p.constant = (i > 1 and "REST_" or "") .. "STAGE" .. stage.number .. (number > 1 and "_TAIL" or "")
                local of = "stage " .. stage.number .. (number > 1 and "'s last block" or "")
                constant(p.constant .. "_WEIGHTS", p.offset, "where the weights of " .. of .. " begin in a repeat's")
                constant(p.constant .. "_MULTIPLIERS", p.multiplier_at, "its multipliers")
                if not seen[p.name] then
                    seen[p.name] = true
                    table.insert(own.blocks, {
                        name = p.name,
                        rows = p.rows,
                        outputs = p.outputs,
                        folds = p.folds,
                        fold_gap = p.fold_gap,
                        depth = p.folds * p.rows,
                        strips = strips_of(p.outputs),
                    })
                end
            end
            for _, pass in ipairs(stage.passes) do
                if not seen[pass.name] then
                    seen[pass.name] = true
                    table.insert(own.passes, pass)
                end
            end
        end
    end
end

-- The projection of a model's shape: { groups, words, flops, rows, blocks, passes, multipliers: how many, steps: the
-- packer's }.
function projection.plan(shape)
    local own = shape.kind == "bh4" and bh4.plan(shape, 4, 1) or dense(shape.d, shape.bits)
    own.multipliers = place_multipliers(shape, own)
    own.steps = steps_of(shape, own)
    name_kernels(own)
    return own
end

return projection
